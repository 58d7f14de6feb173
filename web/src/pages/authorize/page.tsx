import { useMutation, useQuery } from '@tanstack/react-query';
import { useState, type SyntheticEvent, type ReactNode } from 'react';
import { AccountName } from '../../account/account-name.tsx';
import { ProofProvider, useProof } from '../../account/proof.tsx';
import { SignedIn } from '../../account/signed-in.tsx';
import { ownApi, call, data, type Schemas } from '../../api/client.ts';
import type { Session } from '../../api/session.ts';
import type { Page } from '../../app/routes.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { ErrorNote } from '../../ui/error-note.tsx';
import { Heading } from '../../ui/heading.tsx';
import { QueryView } from '../../ui/query-view.tsx';
import { useStillPage } from '../../ui/still-page.ts';
import { bodyOf, GrantFields, limitFault, NEW_KEY } from '../dashboard/keys/key-fields.tsx';
import { mayCall, organisationName, useOwnOrganisations } from '../../api/organisation.ts';
import { Choice } from '../../ui/choice.tsx';
import { faultsOf } from '../dashboard/keys/new-key.tsx';
import { addressName, addressServices } from './addresses.ts';

type Asked = Schemas['SignInRequest'];

const PATH = '/authorize/{id}/request';
const DAYS = 90;
const SIGNED_OUT = { title: 'Sign in to answer', why: 'Only the owner of an account can say yes' };

/** Asks a person whether a program may call in their name. The program is a stranger, and so is all that it says. */
const AuthorizePage: Page = ({ params: { id = '' } }) => {
  const asked = useQuery({
    queryKey: ['sign-in-request', id],
    queryFn: () => data(ownApi.GET(PATH, { params: { path: { id } } })),
    retry: false,
    staleTime: Infinity,
  });
  return (
    <div className="mx-auto max-w-2xl">
      <Heading title="A program asks to call in your name" lead="Look at who asks before you say yes." />
      <QueryView query={asked}>
        {(request) => (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
            <Who asked={request} />
            <SignedIn part={SIGNED_OUT}>
              {(session) => (
                <ProofProvider session={session}>
                  <Answer id={id} asked={request} session={session} />
                </ProofProvider>
              )}
            </SignedIn>
          </div>
        )}
      </QueryView>
    </div>
  );
};
export default AuthorizePage;

/** The host that is responsible for the program, as far as the gateway knows. */
function hostOf({ document, sends_to: sendsTo, link }: Asked): string {
  if (document !== null) return new URL(document).host;
  return sendsTo ?? (link === null ? 'A program on this computer' : `A program that opens ${link} links`);
}

function Who({ asked }: { readonly asked: Asked }): ReactNode {
  const { name, document, resources, sends_to: sendsTo, link } = asked;
  return (
    <Card title="Who asks">
      <p className="text-xl font-semibold break-all sm:text-2xl">{hostOf(asked)}</p>
      <dl className="mt-4 grid gap-x-5 gap-y-3 sm:grid-cols-[11rem_minmax(0,1fr)]">
        <Fact term="Its access goes to">
          {sendsTo === null ? (
            link === null ? (
              'a program that runs on this computer'
            ) : (
              <>
                whatever opens links with <span className="font-mono break-all">{link}</span> on this computer
              </>
            )
          ) : (
            <span className="font-medium break-all">{sendsTo}</span>
          )}
        </Fact>
        <Fact term="What it wants to call">
          <ul className="grid gap-1.5">
            {resources.map((resource) => (
              <li key={resource}>
                <span className="block font-medium">{addressName(resource)}</span>
                <span className="font-mono text-sm break-all text-soft">{resource}</span>
              </li>
            ))}
          </ul>
        </Fact>
        <Fact term="Who vouches for it">
          {document === null ? (
            'nobody: it registered itself at this gateway'
          ) : (
            <>
              <span className="block">whoever wrote this document:</span>
              <span className="font-mono text-sm break-all">{document}</span>
            </>
          )}
        </Fact>
        <Fact term="What it calls itself">
          {name === null ? (
            'nothing'
          ) : (
            <>
              <bdi className="block rounded-md bg-sunk px-3 py-1.5 break-words">{name}</bdi>
              <span className="text-sm text-soft">Nobody has checked this name.</span>
            </>
          )}
        </Fact>
      </dl>
    </Card>
  );
}

function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="grid gap-1 sm:col-span-2 sm:grid-cols-subgrid">
      <dt className="text-soft">{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The choice of the account that is signed in. */
const OWN = 'own';

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

function Answer({
  id,
  asked,
  session,
}: {
  readonly id: string;
  readonly asked: Asked;
  readonly session: Session;
}): ReactNode {
  const [draft, setDraft] = useState({
    ...NEW_KEY,
    label: asked.name ?? hostOf(asked),
    limit: '5',
    reset: 'monthly' as const,
    expires: inDays(DAYS),
    services: addressServices(asked.resources).join('\n'),
  });
  const prove = useProof();
  const { data: organisations = [] } = useOwnOrganisations();
  const payers = organisations.filter(({ role }) => mayCall(role));
  // Somebody of a company usually has no money of their own.
  const [chosen, setPayer] = useState<string | null>(null);
  const payer = chosen ?? (session.signed_in_by === 'person' ? payers[0]?.account : undefined) ?? OWN;
  const params = { path: { id } };
  const goOn = {
    onSuccess: (next: { readonly redirect_to: string } | null) => next && location.assign(next.redirect_to),
  };
  const allow = useMutation({
    mutationFn: async () => {
      const headers = await prove(`Let ${hostOf(asked)} call services in your name.`);
      const acting = payer === OWN ? {} : { 'x-tollgate-account': payer };
      return headers === null
        ? null
        : call(ownApi.POST(PATH, { params, body: bodyOf(draft), headers: { ...headers, ...acting } }));
    },
    ...goOn,
  });
  const refuse = useMutation({ mutationFn: () => call(ownApi.DELETE(PATH, { params })), ...goOn });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (limitFault(draft) === null) allow.mutate();
  };
  const error = allow.error ?? refuse.error;
  const faults = faultsOf(allow.error);
  const isStill = useStillPage();
  const isDone = allow.data != null || refuse.data != null;
  return (
    <Card title="What you allow">
      <form onSubmit={submit} className="grid gap-5">
        {payers.length > 0 && (
          <div className="grid justify-items-start gap-2">
            <p className="font-medium">Who pays</p>
            <Choice
              label="Who pays"
              options={[
                { value: OWN, text: 'My own account' },
                ...payers.map((one) => ({ value: one.account, text: organisationName(one) })),
              ]}
              chosen={payer}
              onChoose={setPayer}
            />
          </div>
        )}
        <p className="text-soft">
          It calls as <AccountName account={payer === OWN ? session.account : payer} />, within these limits. You can
          change them, or sign it out, at any time under Keys.
        </p>
        <GrantFields
          draft={draft}
          onChange={(next) => setDraft({ ...draft, ...next } as typeof draft)}
          faults={faults}
        />
        {error !== null && Object.keys(faults).length === 0 && <ErrorNote error={error} />}
        <p className="text-soft">Did you not begin this in a program of your own? Then refuse.</p>
        <div className="flex flex-wrap justify-end gap-2">
          <Button busy={refuse.isPending} disabled={isDone || allow.isPending} onClick={() => refuse.mutate()}>
            Refuse
          </Button>
          <Button type="submit" tone="primary" busy={allow.isPending} disabled={!isStill || isDone || refuse.isPending}>
            Allow
          </Button>
        </div>
      </form>
    </Card>
  );
}

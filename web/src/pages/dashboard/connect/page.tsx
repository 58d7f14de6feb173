import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useKeys } from '../../../api/own.ts';
import { BOOT } from '../../../app/boot.ts';
import { useSearchState } from '../../../app/search.ts';
import { Card } from '../../../ui/card.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Tabs } from '../../../ui/tabs.tsx';
import { Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { clientsFor } from './clients.ts';
import { OwnCode } from './own-code.tsx';

const LOOK_MS = 3_000;

export default function ConnectPage(): ReactNode {
  return (
    <Frame
      title="Connect"
      lead="An assistant or an editor needs no key, only an address. It then asks you on a page of this gateway."
    >
      {({ rights }) => (
        <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
          <Steps mayMakeKeys={rights === 'full'} />
          {BOOT.authorization && <SignedInPrograms />}
        </div>
      )}
    </Frame>
  );
}

const ADDRESS = `${BOOT.base_url}/mcp`;
const ASSISTANTS = BOOT.authorization ? clientsFor(ADDRESS) : [];
const OWN_CODE = { id: 'code', name: 'Your own code' };
// Those that cannot reach the gateway come last.
const TABS = [
  ...ASSISTANTS.filter(({ reaches }) => reaches),
  OWN_CODE,
  ...ASSISTANTS.filter(({ reaches }) => !reaches),
];
const START = { client: TABS[0]!.id };

function Steps({ mayMakeKeys }: { readonly mayMakeKeys: boolean }): ReactNode {
  const [search, set] = useSearchState(START);
  const client = ASSISTANTS.find(({ id }) => id === search.client);
  return (
    <Card title="Add tollgate to">
      {!BOOT.authorization && (
        <p className="mb-4 text-soft">
          No assistant can sign in here, because the operator has not opened it. Until then, give each program a key.
        </p>
      )}
      <Tabs label="Client" tabs={TABS} chosen={client?.id ?? OWN_CODE.id} onChoose={(id) => set({ client: id })}>
        {client === undefined ? <OwnCode mayMakeKeys={mayMakeKeys} /> : <Assistant client={client} />}
      </Tabs>
    </Card>
  );
}

function Assistant({ client }: { readonly client: (typeof ASSISTANTS)[number] }): ReactNode {
  const code = client.code?.(ADDRESS) ?? ADDRESS;
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      {!client.reaches && (
        <p className="rounded-lg bg-warn-wash px-3 py-2 text-warn">
          {client.name} calls from the internet and cannot reach this address. It needs a gateway with a public one.
        </p>
      )}
      <ol className="list-decimal space-y-3 pl-5">
        {client.steps.map((step, at) => (
          <li key={step}>
            {step}
            {at === client.steps.length - 1 && (
              <div className="mt-2 -ml-5">
                <CodeBlock code={code} label={client.code === null ? 'Address' : 'What to run'} />
              </div>
            )}
          </li>
        ))}
        <li>A page of this gateway opens. Agree there to a budget and an end.</li>
      </ol>
    </div>
  );
}

/** Programs appear here as soon as a person has let them in, so that whoever connects one sees that it works. */
function SignedInPrograms(): ReactNode {
  const { data: keys = [] } = useKeys(LOOK_MS);
  const programs = keys.filter(({ client }) => client !== null).toReversed();
  return (
    <Card title="Signed in">
      {programs.length === 0 ? (
        <p className="text-soft">No program yet. It appears here as soon as you have let it in.</p>
      ) : (
        <ul className="grid gap-2.5">
          {programs.map((program) => (
            <li key={program.hash} className="flex flex-wrap items-baseline gap-x-2.5">
              <bdi className="font-medium break-words">{program.label}</bdi>
              <span className="text-sm wrap-anywhere text-soft">{program.client}</span>
              <span className="text-sm text-soft sm:ml-auto">
                <Time at={program.created_at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      <p className="mt-4 text-sm text-soft">
        Change what a program may spend, or sign it out, under{' '}
        <Link href="/dashboard/keys" className="font-medium underline">
          Keys
        </Link>
        .
      </p>
    </Card>
  );
}

import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useKeys } from '../../../api/own.ts';
import { BOOT } from '../../../app/boot.ts';
import { useSearchState } from '../../../app/search.ts';
import { Card } from '../../../ui/card.tsx';
import { CodeBlock } from '../../../ui/code-block.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { Tabs } from '../../../ui/tabs.tsx';
import { Time } from '../../../ui/time.tsx';
import { Frame } from '../frame.tsx';
import { CLIENTS } from './clients.ts';

const LOOK_MS = 3_000;

export default function ConnectPage(): ReactNode {
  return (
    <Frame
      title="Connect"
      lead="An assistant or an editor needs no key, only an address. It then asks you on a page of this gateway."
    >
      {() =>
        BOOT.authorization ? (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
            <Steps />
            <SignedInPrograms />
          </div>
        ) : (
          <Card>
            <Empty
              heading="h2"
              title="No program can sign in here"
              text="The operator has not opened it. Until then, give each program a key."
              action={
                <Link href="/dashboard/keys" className="font-medium underline">
                  Keys
                </Link>
              }
            />
          </Card>
        )
      }
    </Frame>
  );
}

const START = { client: CLIENTS[0]!.id };

function Steps(): ReactNode {
  const [search, set] = useSearchState(START);
  const client = CLIENTS.find(({ id }) => id === search.client) ?? CLIENTS[0]!;
  const address = `${BOOT.base_url}/mcp`;
  return (
    <Card title="Add tollgate to">
      <Tabs label="Client" tabs={CLIENTS} chosen={client.id} onChoose={(id) => set({ client: id })}>
        <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
          {client.isHosted && isLocal(address) && (
            <p className="rounded-lg bg-warn-wash px-3 py-2 text-warn">
              {client.name} calls from the internet and cannot reach this address. It needs a gateway with a public one.
            </p>
          )}
          <ol className="grid list-decimal gap-1.5 pl-5">
            {client.steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
            <li>A page of this gateway opens. Agree there to a budget and an end.</li>
          </ol>
          <CodeBlock
            code={client.code?.(address) ?? address}
            label={client.code === null ? 'Address' : 'What to run'}
          />
        </div>
      </Tabs>
    </Card>
  );
}

const isLocal = (address: string): boolean => {
  const name = URL.parse(address)?.hostname ?? '';
  return name === 'localhost' || name === '[::1]' || name.startsWith('127.');
};

/** Programs appear here as soon as a person has let them in, so that whoever connects one sees that it works. */
function SignedInPrograms(): ReactNode {
  const { data: keys = [] } = useKeys(LOOK_MS);
  const programs = keys.filter(({ client }) => client !== null);
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

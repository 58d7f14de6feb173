import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { mayAdminister, useOwnRole } from '../../../api/organisation.ts';
import { api, data, type Schemas } from '../../../api/client.ts';
import { Badge } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Card } from '../../../ui/card.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { ErrorNote } from '../../../ui/error-note.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { useStillPage } from '../../../ui/still-page.ts';
import { Time } from '../../../ui/time.tsx';
import { formatUsd } from '../../../ui/usd.ts';
import { Frame } from '../frame.tsx';
import { useAct } from '../organisation/act.ts';

type Approval = Schemas['Approval'];

const LOOK_MS = 5_000;
const TONES = { waiting: 'warn', accepted: 'good', used: 'good' } as const;

export default function ApprovalsPage(): ReactNode {
  return (
    <Frame title="Approvals" lead="Calls that may cost more than the price above which their key has to ask you.">
      {({ rights }) => <Approvals mayDecide={rights === 'full'} />}
    </Frame>
  );
}

function Approvals({ mayDecide }: { readonly mayDecide: boolean }): ReactNode {
  const role = useOwnRole();
  const approvals = useQuery({
    queryKey: ['approvals'],
    queryFn: () => data(api.GET('/api/v1/approvals')),
    refetchInterval: LOOK_MS,
  });
  // The link in an error names one, which comes first.
  const named = new URLSearchParams(window.location.search).get('id');
  return (
    <QueryView query={approvals}>
      {(rows) =>
        rows.length === 0 ? (
          <Card>
            <Empty
              heading="h2"
              title="No call waits"
              text="Set the price of a key or of a member above which a person is asked, and its expensive calls wait here."
            />
          </Card>
        ) : (
          <ul className="grid gap-4">
            {rows
              .toSorted((a, b) => Number(b.id === named) - Number(a.id === named))
              .map((row) => (
                <li key={row.id}>
                  <OneApproval of={row} mayDecide={mayDecide && mayAdminister(role)} />
                </li>
              ))}
          </ul>
        )
      }
    </QueryView>
  );
}

function OneApproval({ of, mayDecide }: { readonly of: Approval; readonly mayDecide: boolean }): ReactNode {
  const queries = useQueryClient();
  const act = useAct(() => void queries.invalidateQueries({ queryKey: ['approvals'] }));
  const isStill = useStillPage();
  const what = of.tool === null ? of.service : `${of.service}: ${of.tool}`;
  const decide = (decision: 'accept' | 'refuse') =>
    act.mutate({
      what: `${decision === 'accept' ? 'Accept' : 'Refuse'} a call of ${what} for at most ${of.highest_cost_usd} USD.`,
      send: (headers) =>
        api.POST('/api/v1/approvals/{id}', { params: { path: { id: of.id } }, body: { decision }, headers }),
    });
  const tone = TONES[of.state as keyof typeof TONES];
  return (
    <Card>
      <div className="grid gap-3">
        <p className="flex flex-wrap items-center gap-x-2.5 gap-y-1">
          <span className="font-medium break-all">{what}</span>
          {tone === undefined ? <Badge>{of.state}</Badge> : <Badge tone={tone}>{of.state}</Badge>}
          <span className="ml-auto">at most {formatUsd(Number(of.highest_cost_usd))}</span>
        </p>
        <p className="text-sm text-soft">
          asked by {of.key.client === null ? 'the key' : 'the program'}{' '}
          <bdi className="font-medium wrap-anywhere text-ink">{of.key.name ?? of.key.hash.slice(0, 12)}</bdi>
          {of.key.client !== null && (
            <>
              {' '}
              (<span className="wrap-anywhere">{of.key.client}</span>)
            </>
          )}{' '}
          <Time at={of.created_at} />, until <Time at={of.expires_at} />
        </p>
        <pre
          className="max-h-64 overflow-auto rounded-md bg-sunk p-3 text-sm break-all whitespace-pre-wrap"
          tabIndex={0}
        >
          {of.preview ?? 'Only who can decide reads the request.'}
        </pre>
        <p className="font-mono text-xs break-all text-soft">SHA-256 {of.digest}</p>
        {act.error !== null && <ErrorNote error={act.error} />}
        {mayDecide && of.state === 'waiting' && (
          <div className="flex gap-2">
            <Button tone="primary" disabled={!isStill} busy={act.isPending} onClick={() => decide('accept')}>
              Accept
            </Button>
            <Button disabled={act.isPending} onClick={() => decide('refuse')}>
              Refuse
            </Button>
          </div>
        )}
      </div>
    </Card>
  );
}

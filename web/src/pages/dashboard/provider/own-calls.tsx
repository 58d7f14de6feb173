import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, call, type Schemas } from '../../../api/client.ts';
import { whyFailed } from '../../../calls/causes.ts';
import { Outcome } from '../../../calls/outcome.tsx';
import { Card } from '../../../ui/card.tsx';
import { formatNumber } from '../../../ui/number.ts';
import { Money } from '../../../ui/money.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { Table, type Column } from '../../../ui/table.tsx';
import { Time } from '../../../ui/time.tsx';
import { OlderButton } from '../balance/older-button.tsx';

type OwnCall = Schemas['CallOfProvider'];

const COLUMNS: readonly Column<OwnCall>[] = [
  {
    id: 'call',
    head: 'Call',
    cell: ({ service, tool, id }) => (
      <>
        <span className="font-medium">{[service, tool].filter((part) => part !== null).join(' ')}</span>
        <p className="font-mono text-xs break-all text-soft">{id}</p>
      </>
    ),
  },
  { id: 'ended', head: 'Ended', from: 'sm', cell: (row) => <Time at={row.ended_at} /> },
  {
    id: 'tokens',
    head: 'Tokens in, out',
    align: 'right',
    from: 'md',
    cell: ({ tokens_prompt: prompt, tokens_completion: completion }) =>
      prompt + completion === 0 ? '–' : `${formatNumber(prompt)}, ${formatNumber(completion)}`,
  },
  {
    id: 'outcome',
    head: 'Outcome',
    from: 'sm',
    cell: ({ outcome, failed, error_code, primitive }) => (
      <>
        <Outcome
          of={{
            state: 'settled',
            outcome,
            failed,
            primitive: primitive ?? 'model',
            waiting: false,
            is_batch: false,
          }}
        />
        {failed && <p className="text-sm text-soft">{whyFailed({ failed, error_code })}</p>}
      </>
    ),
  },
  { id: 'earned', head: 'Earned', align: 'right', cell: (row) => <Money micro={row.earned_micro_usdc} /> },
];

const PAGE = 20;

/** The calls that the provider's services answered, the one that ended last first. */
export function OwnCalls(): ReactNode {
  const list = useInfiniteQuery({
    queryKey: ['provider-calls'],
    queryFn: ({ pageParam }) =>
      call(
        api.GET('/api/v1/provider/calls', {
          params: { query: { limit: PAGE, ...(pageParam === null ? {} : { cursor: pageParam }) } },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor: next }) => next,
  });
  return (
    <Card title="Calls" flush>
      <QueryView query={list} loading={<Skeleton className="m-5 h-24 w-auto" />}>
        {({ pages }) => (
          <>
            <Table
              caption="Calls of your services"
              columns={COLUMNS}
              rows={pages.flatMap(({ data }) => data)}
              rowKey={({ id }) => id}
              empty={<p className="px-5 py-6 text-soft">No call has ended yet.</p>}
            />
            <OlderButton list={list} text="Older calls" />
          </>
        )}
      </QueryView>
    </Card>
  );
}

import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { CallRow } from '../api/own.ts';
import { KindTile } from '../ui/kind.tsx';
import { KIND_NAMES } from '../ui/kinds.ts';
import { Money } from '../ui/money.tsx';
import { formatNumber } from '../ui/number.ts';
import { Table, type Column } from '../ui/table.tsx';
import { formatDuration, Time } from '../ui/time.tsx';
import { whyFailed } from './causes.ts';
import { Outcome } from './outcome.tsx';

const tokensOf = ({ tokens_prompt, tokens_completion }: CallRow) => tokens_prompt + tokens_completion;

/** Whether it is a chat with tools of the gateway: the calls under it are charged, and its own lock is given back. */
const isRun = ({ state, failed, outcome, is_batch }: CallRow): boolean =>
  state === 'released' && !failed && !is_batch && outcome !== 'continued';

/** The address of a call's page in the dashboard. */
const ownPage = (id: string): string => `/dashboard/calls/${encodeURIComponent(id)}`;

/** The provider that served a call, or the last one that was tried. */
const providerOf = ({ provider_name: name, failed_attempts: attempts }: CallRow): string =>
  name ?? attempts.at(-1)?.provider ?? '–';

const columnsOf = (pageOf: (id: string) => string): readonly Column<CallRow>[] => [
  {
    id: 'call',
    head: 'Call',
    cell: (row) => (
      <div className="flex min-w-0 items-center gap-2.5">
        <KindTile kind={row.primitive} size={34} />
        <div className="min-w-0">
          <Link href={pageOf(row.id)} className="row-link font-medium hover:underline">
            {row.service}
            {row.tool === null ? '' : ` › ${row.tool}`}
          </Link>
          <p className="text-sm text-soft">
            {row.is_batch ? 'Batch' : isRun(row) ? 'Chat with tools' : KIND_NAMES[row.primitive].one}
            {row.parent === null ? '' : ' under another call'}, <Time at={row.created_at} />
          </p>
          {row.failed && <p className="line-clamp-2 max-w-[60ch] text-sm wrap-anywhere text-soft">{whyFailed(row)}</p>}
          {row.outcome !== 'complete' && (
            <p className="mt-1 sm:hidden">
              <Outcome of={row} />
            </p>
          )}
        </div>
      </div>
    ),
  },
  { id: 'provider', head: 'Provider', from: 'md', cell: providerOf },
  {
    id: 'outcome',
    head: 'Outcome',
    from: 'sm',
    cell: (row) => (
      <>
        <Outcome of={row} />
        {row.refunded_micro_usdc !== undefined && (
          <span className="block text-xs text-soft">
            <Money micro={row.refunded_micro_usdc} /> refunded
          </span>
        )}
        {row.error_code !== null && <code className="block text-xs break-all text-soft">{row.error_code}</code>}
      </>
    ),
  },
  {
    id: 'tokens',
    head: 'Tokens',
    align: 'right',
    from: 'lg',
    cell: (row) => (tokensOf(row) === 0 ? '–' : formatNumber(tokensOf(row))),
  },
  {
    id: 'time',
    head: 'Duration',
    align: 'right',
    from: 'md',
    cell: (row) => (row.generation_time === null ? '–' : formatDuration(row.generation_time)),
  },
  {
    id: 'cost',
    head: 'Cost',
    align: 'right',
    width: 'w-28',
    // What runs and batches cost is in the rows of their calls.
    cell: (row) => (row.state === 'held' || row.is_batch || isRun(row) ? '–' : <Money micro={row.cost_micro_usdc} />),
  },
];

/** Calls as rows that link to their details. `pageOf`: the address of these, by the id of a call. */
export function CallsTable({
  calls,
  empty,
  pageOf = ownPage,
}: {
  readonly calls: readonly CallRow[];
  readonly empty?: ReactNode;
  readonly pageOf?: (id: string) => string;
}): ReactNode {
  return (
    <Table
      caption="Calls"
      columns={columnsOf(pageOf)}
      rows={calls}
      rowKey={({ id }) => id}
      {...(empty === undefined ? {} : { empty })}
    />
  );
}

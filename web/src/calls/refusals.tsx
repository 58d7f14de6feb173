import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.ts';
import { Card } from '../ui/card.tsx';
import { Empty } from '../ui/empty.tsx';
import { formatNumber } from '../ui/number.ts';
import { QueryView } from '../ui/query-view.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

type Row = Schemas['RefusedRequests'];

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'why',
    head: 'Why',
    cell: ({ status, target, message }) => (
      <div className="min-w-0">
        <p className="font-medium wrap-anywhere">
          {status} {target}
        </p>
        <p className="max-w-[70ch] text-sm wrap-anywhere text-soft">{message}</p>
      </div>
    ),
  },
  { id: 'key', head: 'Key', from: 'md', cell: ({ key }) => key ?? '–' },
  { id: 'times', head: 'Times', align: 'right', cell: ({ requests }) => formatNumber(requests) },
  { id: 'last', head: 'Last', from: 'sm', cell: ({ last_at }) => <Time at={last_at} /> },
];

/** Requests of an account that were refused before they became calls. `guide`: the page with what to do about them. */
export function Refusals({
  queryKey,
  read,
  guide,
}: {
  readonly queryKey: readonly unknown[];
  readonly read: () => Promise<readonly Row[]>;
  readonly guide: string;
}): ReactNode {
  const refusals = useQuery({ queryKey, queryFn: read, refetchInterval: 15_000 });
  return (
    <Card title="Refused requests" flush>
      <QueryView query={refusals}>
        {(rows) => (
          <Table
            caption="Refused requests"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ code, target, api_key }) => `${code} ${target} ${api_key ?? ''}`}
            empty={<Empty title="No request was refused" text="Of this gateway since its start." />}
          />
        )}
      </QueryView>
      <p className="border-t border-line px-4 py-3 text-sm text-soft sm:px-5">
        They cost nothing, and are no calls.{' '}
        <a href={guide} className="link">
          What to do about each
        </a>
      </p>
    </Card>
  );
}

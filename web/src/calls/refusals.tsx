import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.ts';
import { Card } from '../ui/card.tsx';
import { Empty } from '../ui/empty.tsx';
import { formatNumber } from '../ui/number.ts';
import { QueryView } from '../ui/query-view.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { Time } from '../ui/time.tsx';

type Refused = Schemas['RefusedRequestsSince'];
type Row = Schemas['RefusedRequests'];

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'why',
    head: 'Why',
    cell: ({ status, target, requests, reasons }) => (
      <div className="min-w-0">
        <p className="font-medium">
          {status} {target}
        </p>
        <Reasons row={{ requests, reasons }} />
      </div>
    ),
  },
  { id: 'key', head: 'Key', from: 'md', cell: ({ key }) => key ?? '–' },
  { id: 'times', head: 'Times', align: 'right', cell: ({ requests }) => formatNumber(requests) },
  { id: 'last', head: 'Last', from: 'sm', cell: ({ last_at }) => <Time at={last_at} /> },
];

/** Why requests were refused; with how often, if there are several reasons. */
function Reasons({ row: { requests, reasons } }: { readonly row: Pick<Row, 'requests' | 'reasons'> }): ReactNode {
  const rest = requests - reasons.reduce((sum, each) => sum + each.requests, 0);
  const several = reasons.length > 1 || rest > 0;
  return (
    <div className="max-w-[70ch] text-sm wrap-anywhere text-soft">
      {reasons.map((each) => (
        <p key={each.message}>
          {several && `${formatNumber(each.requests)} times: `}
          {each.message}
        </p>
      ))}
      {rest > 0 && <p>{formatNumber(rest)} times for other reasons</p>}
    </div>
  );
}

/** Requests of an account that were refused before they became calls. `guide`: the page with what to do about them. */
export function Refusals({
  queryKey,
  read,
  guide,
}: {
  readonly queryKey: readonly unknown[];
  readonly read: () => Promise<Refused>;
  readonly guide: string;
}): ReactNode {
  const refusals = useQuery({ queryKey, queryFn: read, refetchInterval: 15_000 });
  return (
    <Card title="Refused requests" flush>
      <QueryView query={refusals}>
        {({ data: rows, since }) => (
          <>
            <Table
              caption="Refused requests"
              columns={COLUMNS}
              rows={rows}
              rowKey={({ code, target, api_key }) => `${code} ${target} ${api_key ?? ''}`}
              empty={<Empty title="No request was refused" text="This gateway remembers those since its start." />}
            />
            <p className="border-t border-line px-4 py-3 text-sm text-soft sm:px-5">
              Since the gateway’s start <Time at={since} exact />; it remembers none of before.
            </p>
          </>
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

import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api, data, type Schemas } from '../../api/client.ts';
import { Badge } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Money } from '../../ui/money.tsx';
import { formatNumber, formatShare } from '../../ui/number.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

type Reconciliation = Schemas['Reconciliation'];
type Model = Reconciliation['models'][number];

const amount = (micro: number | null | undefined): ReactNode => (micro == null ? '–' : <Money micro={micro} />);
const number = (count: number | null | undefined): string => (count == null ? '–' : formatNumber(count));

const COLUMNS: readonly Column<Model>[] = [
  { id: 'model', head: 'Model', cell: ({ model }) => <span className="break-all">{model ?? 'All models'}</span> },
  { id: 'calls', head: 'Calls here', align: 'right', from: 'sm', cell: (row) => number(row.requests) },
  { id: 'billed_calls', head: 'There', align: 'right', from: 'sm', cell: (row) => number(row.billed_requests) },
  { id: 'cost', head: 'Cost here', align: 'right', from: 'lg', cell: (row) => amount(row.cost_micro_usd) },
  { id: 'billed', head: 'Billed', align: 'right', cell: (row) => amount(row.billed_micro_usd) },
  { id: 'charged', head: 'Charged', align: 'right', from: 'lg', cell: (row) => amount(row.charged_micro_usdc) },
  { id: 'margin', head: 'Margin', align: 'right', from: 'sm', cell: (row) => amount(row.margin_micro_usd) },
  {
    id: 'difference',
    head: 'Differs',
    align: 'right',
    cell: (row) => <span className={row.beyond ? 'text-bad' : ''}>{formatShare(row.difference)}</span>,
  },
];

/** The last kept comparison with the bill of each vendor. */
export default function Reconciliations(): ReactNode {
  const results = useQuery({
    queryKey: ['admin', 'reconciliations'],
    queryFn: () => data(api.GET('/admin/v1/reconciliation/results')),
    refetchInterval: 60_000,
  });
  return (
    <QueryView query={results}>
      {(rows) => (
        <div className="grid gap-5">
          {rows.length === 0 && (
            <Empty
              title="No bill of a vendor has been compared yet"
              text={
                <>
                  <code>tollgate reconcile openai usage.csv costs.csv --keep</code> compares exports of a vendor with
                  the calls here. The guide says{' '}
                  <a href="/docs/guide/run/reconcile#exports" className="link">
                    where to get them
                  </a>
                  .
                </>
              }
            />
          )}
          {rows.map((row) => (
            <OneVendor key={row.vendor} result={row} />
          ))}
        </div>
      )}
    </QueryView>
  );
}

/** By how much the bill is higher or lower in all, and the models that differ too much. */
function Headline({ of, difference }: { readonly of: readonly Model[]; readonly difference: number }): ReactNode {
  const all = of.find(({ model }) => model === null);
  const beyond = of.flatMap(({ model, beyond: isBeyond }) => (model !== null && isBeyond ? [model] : []));
  const more = (all?.billed_micro_usd ?? 0) - (all?.cost_micro_usd ?? 0);
  const compared = all?.billed_micro_usd != null && all.cost_micro_usd != null && more !== 0;
  return (
    <>
      {compared && (
        <>
          The bill is <Money micro={Math.abs(more)} /> {more > 0 ? 'higher' : 'lower'} than what the calls here
          cost.{' '}
        </>
      )}
      Beyond the bound: {beyond.join(', ') || 'all models together'}, by up to {formatShare(difference)}.
    </>
  );
}

function OneVendor({ result }: { readonly result: Reconciliation }): ReactNode {
  const { vendor, first_day, last_day, bound, difference, beyond, models, reasons, at } = result;
  return (
    <Card
      title={
        <span className="flex flex-wrap items-center gap-2">
          <span className="break-all">{vendor}</span>
          <Badge tone={beyond ? 'bad' : 'good'}>{beyond ? 'differs' : 'agrees'}</Badge>
        </span>
      }
      action={
        <span className="text-sm text-soft">
          compared <Time at={at} />
        </span>
      }
    >
      <p className="mb-3 text-soft">
        {first_day} to {last_day} (UTC).{' '}
        {beyond ? (
          <Headline of={models} difference={difference} />
        ) : (
          `No model differs by more than ${formatShare(bound)}.`
        )}{' '}
        Nothing was booked.
      </p>
      <Table
        caption={`Bill of ${vendor}`}
        columns={COLUMNS}
        rows={models}
        rowKey={({ model }) => model ?? ''}
        empty={<Empty title="No model" text="The export names none." />}
      />
      {reasons.length > 0 && (
        <>
          <h3 className="mt-6 mb-1 text-sm font-medium text-soft">What may explain it</h3>
          <ul className="list-disc space-y-1 pl-5">
            {reasons.map(({ kind, text }) => (
              <li key={`${kind} ${text}`}>{text}</li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}

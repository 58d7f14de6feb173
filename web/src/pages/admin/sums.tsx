import type { ReactNode } from 'react';
import type { Schemas } from '../../api/client.ts';
import { CAUSES } from '../../calls/causes.ts';
import { Choice } from '../../ui/choice.tsx';
import { Money } from '../../ui/money.tsx';
import { formatNumber, formatShare, formatShort } from '../../ui/number.ts';
import type { Column } from '../../ui/table.tsx';

/** Sums of calls in a range, as every page of the operator shows them. */
export type Sums = Schemas['CallSums'];

/** The ranges of sums. The first is the default. */
const RANGES = [
  { value: '24h', text: '24 hours' },
  { value: '7d', text: '7 days' },
  { value: '30d', text: '30 days' },
] as const;
export type Range = (typeof RANGES)[number]['value'];

/** The range of an address; the default for another text. */
export const rangeOf = (text: string): Range => RANGES.find(({ value }) => value === text)?.value ?? '24h';

export function RangeChoice({
  chosen,
  onChoose,
}: {
  readonly chosen: Range;
  readonly onChoose: (range: Range) => void;
}): ReactNode {
  return <Choice label="Range" options={RANGES} chosen={chosen} onChoose={onChoose} />;
}

/** A margin, in the colour of a loss if it is one. */
export function Margin({ micro }: { readonly micro: number }): ReactNode {
  return (
    <span className={micro < 0 ? 'text-bad' : ''}>
      <Money micro={micro} />
    </span>
  );
}

type MarginSums = Pick<
  Sums,
  'requests' | 'margin_micro_usd' | 'cost_micro_usd' | 'unknown_cost_requests' | 'unknown_cost_micro_usdc'
>;

/** Whether the cost of no served call is known. */
export const isUnknown = ({ requests, cost_micro_usd: cost, unknown_cost_requests: unknown }: MarginSums): boolean =>
  unknown > 0 && unknown === requests && cost === 0;

/** The margin of sums; in words where no cost is known. Below it are the calls of unknown cost. */
export function MarginOf({ sums }: { readonly sums: MarginSums }): ReactNode {
  if (isUnknown(sums) && sums.margin_micro_usd === 0) return <span className="text-sm text-soft">no cost set</span>;
  return (
    <>
      <Margin micro={sums.margin_micro_usd} />
      <span className="block text-xs text-soft">
        <OfUnknownCost sums={sums} />
      </span>
    </>
  );
}

/** The calls of own offers without a cost, and their charges, which are in no margin. Nothing without such calls. */
export function OfUnknownCost({ sums }: { readonly sums: MarginSums }): ReactNode {
  const { unknown_cost_requests: calls, unknown_cost_micro_usdc: micro } = sums;
  if (calls === 0 && micro === 0) return null;
  return (
    <>
      <Money micro={micro} /> of {formatNumber(calls)} {calls === 1 ? 'call' : 'calls'} of unknown cost
    </>
  );
}

/** Calls that failed, with their share of all. */
export function Failed({ of: { requests, failed } }: { readonly of: Pick<Sums, 'requests' | 'failed'> }): ReactNode {
  if (failed === 0) return '–';
  return (
    <span className="whitespace-nowrap">
      {formatNumber(failed)} <span className="text-sm text-soft">{formatShare(failed / (requests + failed))}</span>
    </span>
  );
}

/** The columns of sums, after the names of what they are of. */
export const SUMS_COLUMNS: readonly Column<Pick<Sums, 'requests' | 'failed' | 'charged_micro_usdc'>>[] = [
  {
    id: 'requests',
    head: 'Served',
    align: 'right',
    sort: ({ requests }) => requests,
    cell: ({ requests }) => formatShort(requests),
  },
  {
    id: 'failed',
    head: 'Failed',
    align: 'right',
    sort: ({ failed }) => failed,
    cell: (row) => <Failed of={row} />,
  },
  {
    id: 'charged',
    head: 'Charged',
    align: 'right',
    sort: ({ charged_micro_usdc }) => charged_micro_usdc,
    cell: (row) => <Money micro={row.charged_micro_usdc} />,
  },
];

export const MARGIN_COLUMN: Column<MarginSums> = {
  id: 'margin',
  head: 'Margin',
  align: 'right',
  sort: ({ margin_micro_usd }) => margin_micro_usd,
  cell: (row) => <MarginOf sums={row} />,
};

/** A cause in words, with its code. */
function Cause({ code }: { readonly code: string }): ReactNode {
  const words = CAUSES[code];
  return (
    <>
      {words !== undefined && <span className="block">{words}</span>}
      <code className={words === undefined ? '' : 'text-xs text-soft'}>{code}</code>
    </>
  );
}

/** Failed calls by cause, with bars. */
export function Causes({
  failures,
}: {
  readonly failures: readonly { readonly cause: string; readonly failed: number }[];
}): ReactNode {
  if (failures.length === 0) return <p className="text-soft">No call failed.</p>;
  const all = failures.reduce((sum, { failed }) => sum + failed, 0);
  return (
    <ul className="grid gap-3.5">
      {failures.map(({ cause, failed }) => (
        <li key={cause}>
          <div className="flex items-baseline justify-between gap-4">
            <span className="min-w-0 break-words">
              <Cause code={cause} />
            </span>
            <span className="figures whitespace-nowrap">
              {formatNumber(failed)} <span className="text-sm text-soft">{formatShare(failed / all)}</span>
            </span>
          </div>
          <div aria-hidden className="mt-1.5 h-1.5 rounded-full bg-sunk">
            <div className="h-full rounded-full bg-bad" style={{ width: `${(failed / all) * 100}%` }} />
          </div>
        </li>
      ))}
    </ul>
  );
}

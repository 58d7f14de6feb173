import type { CallDetail } from '../api/own.ts';
import { formatNumber } from '../ui/number.ts';

type CostLine = NonNullable<CallDetail['cost_lines']>[number];

/** Meters that have a price each. Tokens and characters have one for a million. */
const EACH: ReadonlySet<string> = new Set(['call', 'second', 'image']);
const MILLION_DIGITS = 6;

/** An exact decimal of USD with at least two places, times ten to the power of `shift`. */
function exactDecimal(usd: string, shift: number): string {
  const [whole = '', places = ''] = usd.split('.');
  const padded = places.padEnd(shift, '0');
  const left = `${whole}${padded.slice(0, shift)}`.replace(/^0+(?=\d)/, '');
  return `$${left}.${padded.slice(shift).replace(/0+$/, '').padEnd(2, '0')}`;
}

/** A line of a charge: `13 prompt × $0.50/M`. */
export function costLine({ meter, units, usd_per_unit: usd }: CostLine): string {
  const price = EACH.has(meter) ? exactDecimal(usd, 0) : `${exactDecimal(usd, MILLION_DIGITS)}/M`;
  return `${formatNumber(units)} ${meter.replaceAll('_', ' ')} × ${price}`;
}

/** Whether the lines come to more than was charged, in micro-USD: then the charge was cut to what was locked. */
export const isCut = (lines: readonly CostLine[], charged: number): boolean =>
  lines.reduce((sum, { amount_usd: usd }) => sum + Number(usd) * 1e6, 0) > charged + 0.5;

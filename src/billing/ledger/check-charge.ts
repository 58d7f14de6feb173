import type { Row } from '#store';
import { feeOf } from './ledger-operations.ts';
import { cost, type Rates } from '../prices/price.ts';
import { usageFromText } from '../prices/price-text.ts';

/** How the charge of a settlement compares with its price version and its usage. */
type ChargeCheck =
  /** `below`: it was cut to its estimate, or to what came of what was ordered. */
  | { readonly ok: true; readonly kind: 'exact' | 'below' | 'whole_estimate' }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Recomputes a settlement (a row of `locks`) from its price version and its usage. A call may cost less than that,
 * because it is cut to its estimate, or to what came of what was ordered, but never more. There is one exception:
 * earlier versions charged the estimate for output past its cap (`outcome: over_cap`). That is at most the lock
 * without its lendable part. The fee is recomputed too. Old settlements did not store their basis points, so their
 * fee is only compared with the journal.
 */
export function checkCharge(row: Row, prices: ReadonlyMap<string, Rates>): ChargeCheck {
  const total = (row.charged as bigint) + (row.shortfall as bigint);
  const due = dueOf(row, prices);
  const fee = row.fee_bps === null ? null : feeOf(row.charged as bigint, Number(row.fee_bps), row.id as string);
  const problems: string[] = [];
  if (fee !== null && row.fee !== fee)
    problems.push(`its fee is ${row.fee}; ${row.fee_bps} basis points of ${row.charged} are ${fee}`);
  if (typeof due === 'string') problems.push(due);
  else if (total > due.most) problems.push(`was charged ${total} for usage that costs ${due.cost}`);
  if (problems.length > 0 || typeof due === 'string')
    return { ok: false, problems: problems.map((problem) => `lock ${row.id}: ${problem}`) };
  return { ok: true, kind: total === due.cost ? 'exact' : total < due.cost ? 'below' : 'whole_estimate' };
}

interface Due {
  /** Computed from price version and usage. */
  readonly cost: bigint;
  /** The highest charge that is accepted. */
  readonly most: bigint;
}

const FREE: Due = { cost: 0n, most: 0n };

/** The cost of a settlement, computed from its record, or the reason why it cannot be computed. */
function dueOf(row: Row, prices: ReadonlyMap<string, Rates>): Due | string {
  if (!(JSON.parse(row.prices as string) as string[]).includes(row.price as string))
    return 'it was settled at a price that it was not locked with';
  const outcome = attempt(() => (JSON.parse(row.detail as string) as { outcome?: unknown } | null)?.outcome);
  if (outcome === 'free') return FREE;
  const total = (row.charged as bigint) + (row.shortfall as bigint);
  const rates = prices.get(row.price as string);
  if (!rates) return total === 0n ? FREE : `its price ${row.price} is not known`;
  const usage = attempt(() => usageFromText(row.usage as string));
  if (!usage) return 'its usage cannot be read';
  const due = cost(rates, usage);
  const estimate = (row.amount as bigint) - (row.lendable as bigint);
  return { cost: due, most: outcome === 'over_cap' && estimate > due ? estimate : due };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

import { loadStatement, type Query, type Row } from '#store';
import { feeOf } from './ledger-operations.ts';
import { cost, priceId, usageFromText, type Rates } from './price.ts';
import { ratesFromText } from './price-book.ts';

const PRICES = loadStatement(import.meta.url, './sql/audit-prices.sql');
const SETTLED = loadStatement(import.meta.url, './sql/audit-settled.sql');

const PAGE = 2_000;
const PROBLEMS_MAX = 20;

/** Reads every price version. An id is a digest of its content, so a changed price does not match its id. */
export async function auditPrices(query: Query): Promise<{ problems: string[]; rates: ReadonlyMap<string, Rates> }> {
  const problems: string[] = [];
  const rates = new Map<string, Rates>();
  for await (const row of pages(query, PRICES)) {
    const id = row.id as string;
    const parsed = attempt(() => ratesFromText(row.rates as string));
    if (parsed) rates.set(id, parsed);
    if (!parsed || priceId(row.provider as string, row.service as string, parsed) !== id) {
      if (problems.length < PROBLEMS_MAX) problems.push(`price ${id} does not match its id`);
    }
  }
  return { problems, rates };
}

/**
 * Recomputes every settlement from its price version and its usage. A call may cost less than that, because it is cut
 * to its estimate, or to what came of what was ordered, but never more. There is one exception: earlier versions
 * charged the estimate for output past its cap (`outcome: over_cap`). That is at most the lock without its lendable
 * part. The fee is recomputed too. Old settlements did not store their basis points, so their fee is only compared with
 * the journal.
 */
export async function auditCharges(
  query: Query,
  prices: ReadonlyMap<string, Rates>,
): Promise<{ problems: string[]; fine: string }> {
  const problems: string[] = [];
  let exact = 0;
  let below = 0;
  let wholeEstimates = 0;
  const say = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  for await (const row of pages(query, SETTLED)) {
    const asked = (row.charged as bigint) + (row.shortfall as bigint);
    const due = dueOf(row, prices);
    const fee = row.fee_bps === null ? null : feeOf(row.charged as bigint, Number(row.fee_bps), row.id as string);
    if (fee !== null && row.fee !== fee)
      say(`lock ${row.id}: its fee is ${row.fee}; ${row.fee_bps} basis points of ${row.charged} are ${fee}`);
    if (typeof due === 'string') say(`lock ${row.id}: ${due}`);
    else if (asked === due.cost) exact += 1;
    else if (asked < due.cost) below += 1;
    else if (asked <= due.most) wholeEstimates += 1;
    else say(`lock ${row.id}: was charged ${asked} for usage that costs ${due.cost}`);
  }
  const earlier =
    wholeEstimates === 0 ? '' : `, ${wholeEstimates} the estimate (past their cap, by an earlier version)`;
  return {
    problems,
    fine: `${exact} settlements cost what price and usage say, ${below} less (cut to their estimate, or to what came)${earlier}`,
  };
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
  const asked = (row.charged as bigint) + (row.shortfall as bigint);
  const rates = prices.get(row.price as string);
  if (!rates) return asked === 0n ? FREE : `its price ${row.price} is not known`;
  const usage = attempt(() => usageFromText(row.usage as string));
  if (!usage) return 'its usage cannot be read';
  const due = cost(rates, usage);
  const estimate = (row.amount as bigint) - (row.lendable as bigint);
  return { cost: due, most: outcome === 'over_cap' && estimate > due ? estimate : due };
}

async function* pages(query: Query, statement: typeof PRICES): AsyncGenerator<Row, void, undefined> {
  for (let after = ''; ;) {
    const rows = await query(statement, [after, PAGE]);
    yield* rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.id as string;
  }
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

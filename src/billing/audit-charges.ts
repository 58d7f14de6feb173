import { loadStatement, type Query, type Row } from '#store';
import { feeOf } from './ledger-operations.ts';
import { cost, priceId, usageFromText, type Rates } from './price.ts';
import { ratesFromText } from './price-book.ts';

const PRICES = loadStatement(import.meta.url, './sql/audit-prices.sql');
const SETTLED = loadStatement(import.meta.url, './sql/audit-settled.sql');

const PAGE = 2_000;
const PROBLEMS_MAX = 20;

/** Reads every price version; an id is a digest of its content, so a changed price shows. */
export async function auditPrices(query: Query): Promise<{ problems: string[]; rates: ReadonlyMap<string, Rates> }> {
  const problems: string[] = [];
  const rates = new Map<string, Rates>();
  for await (const row of pages(query, PRICES)) {
    const id = row.id as string;
    const parsed = attempt(() => ratesFromText(row.rates as string));
    if (parsed) rates.set(id, parsed);
    if (!parsed || priceId(row.provider as string, row.service as string, parsed) !== id) {
      if (problems.length < PROBLEMS_MAX) problems.push(`price ${id} says something else than its id`);
    }
  }
  return { problems, rates };
}

/**
 * Recomputes every settlement from its price version and its usage. A call may cost less than that (a cut to its
 * estimate), never more, except for output past the budget (`outcome: over_cap`), which costs at most the lock
 * without what it could lend. The fee is recomputed as well; of what was settled before the basis points were kept,
 * it is only held against the journal.
 */
export async function auditCharges(
  query: Query,
  prices: ReadonlyMap<string, Rates>,
): Promise<{ problems: string[]; fine: string }> {
  const problems: string[] = [];
  let exact = 0;
  let below = 0;
  const say = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  for await (const row of pages(query, SETTLED)) {
    const asked = (row.charged as bigint) + (row.shortfall as bigint);
    const due = dueOf(row, prices);
    const fee = row.fee_bps === null ? null : feeOf(row.charged as bigint, Number(row.fee_bps), row.id as string);
    if (fee !== null && row.fee !== fee)
      say(`lock ${row.id}: its fee is ${row.fee}; ${row.fee_bps} basis points of ${row.charged} are ${fee}`);
    if (typeof due === 'string' || asked > due) {
      say(`lock ${row.id}: ${typeof due === 'string' ? due : `was charged ${asked} for usage that costs ${due}`}`);
    } else if (asked === due) exact += 1;
    else below += 1;
  }
  return {
    problems,
    fine: `${exact} settlements cost what price and usage say, ${below} less (cut to their estimate)`,
  };
}

/** The most that a settlement may have cost, or why that cannot be said. */
function dueOf(row: Row, prices: ReadonlyMap<string, Rates>): bigint | string {
  if (!(JSON.parse(row.prices as string) as string[]).includes(row.price as string))
    return 'it was settled at a price that it was not locked with';
  const outcome = attempt(() => (JSON.parse(row.detail as string) as { outcome?: unknown } | null)?.outcome);
  if (outcome === 'free') return 0n;
  const asked = (row.charged as bigint) + (row.shortfall as bigint);
  if (outcome === 'over_cap') return (row.amount as bigint) - (row.lendable as bigint);
  const rates = prices.get(row.price as string);
  if (!rates) return asked === 0n ? 0n : `its price ${row.price} is not known`;
  const usage = attempt(() => usageFromText(row.usage as string));
  return usage ? cost(rates, usage) : 'its usage cannot be read';
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

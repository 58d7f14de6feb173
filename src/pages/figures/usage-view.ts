import { formatUsd } from '#billing';
import { dateOf, daysOf, type DayRange, type UsageGroup, type UsageRow, type UsageSums } from '#analytics';
import { objectOf } from '../answer-schemas.ts';
import { csvLine, csvUsd, type Cell } from './csv.ts';
import { asOfSchema } from './market-view.ts';
import { dateRangeSchema } from '../day-range.ts';

const count = { type: 'integer' };
const sums = {
  requests: { ...count, description: 'Settled calls.' },
  failed: { ...count, description: 'Calls that were not charged because they failed.' },
  prompt_tokens: count,
  completion_tokens: count,
  reasoning_tokens: count,
  cached_tokens: count,
  total_tokens: count,
  images: { ...count, description: 'Images that were made.' },
  seconds: { ...count, description: 'Seconds of video, or of work that is charged by seconds.' },
  cost_micro_usdc: { ...count, description: 'Micro-USD.' },
  cost_usd: { type: 'string', description: 'Decimal.' },
};
const groups = {
  date: { type: 'string' },
  model: { type: 'string', description: 'The service that served, of any primitive.' },
  key: { type: ['string', 'null'], description: 'Hash of the key; null where no key was used.' },
  key_label: { type: ['string', 'null'] },
  provider: { type: ['string', 'null'], description: 'Public key; null where nobody served.' },
  provider_name: { type: ['string', 'null'] },
  primitive: { type: 'string' },
};

export const usageSchema = objectOf({
  data: {
    type: 'array',
    description: 'A row has the members of its groups and the sums.',
    items: objectOf({ ...groups, ...sums }, Object.keys(groups)),
  },
  totals: objectOf(sums),
  group_by: { type: 'array', items: { type: 'string' } },
  date_range: dateRangeSchema,
  as_of: asOfSchema,
});

/** Names that the table of sums doesn't have. */
export interface UsageNames {
  /** Labels of keys, by hash. */
  readonly keys: ReadonlyMap<string, string>;
  /** Names of providers, by id. */
  readonly providers: ReadonlyMap<string, string>;
}

/**
 * The rows of an account's sums in the form of answers. If they are grouped by day only, days without calls get a row
 * too.
 */
export function viewUsage(
  rows: readonly UsageRow[],
  range: DayRange,
  by: readonly UsageGroup[],
  names: UsageNames,
): readonly Readonly<Record<string, Cell>>[] {
  const view = (row: UsageRow) => ({ ...groupsOf(row, by, names), ...viewSums(row) });
  if (by.length !== 1 || by[0] !== 'day') return rows.map(view);
  const byDay = new Map(rows.map((row) => [row.day, row]));
  return daysOf(range).map((day) => view(byDay.get(day) ?? { ...NOTHING, day }));
}

const NOTHING: UsageRow = {
  day: 0,
  model: '',
  key: '',
  provider: '',
  primitive: '',
  requests: 0,
  failed: 0,
  charged: 0n,
  prompt: 0,
  completion: 0,
  reasoning: 0,
  cached: 0,
  images: 0,
  seconds: 0,
};

function groupsOf(row: UsageRow, by: readonly UsageGroup[], { keys, providers }: UsageNames): Record<string, Cell> {
  const found: Record<string, Cell> = {};
  for (const group of by) {
    if (group === 'day') found['date'] = dateOf(row.day);
    else if (group === 'model' || group === 'primitive') found[group] = row[group];
    else if (group === 'key') Object.assign(found, { key: row.key || null, key_label: keys.get(row.key) ?? null });
    else Object.assign(found, { provider: row.provider || null, provider_name: providers.get(row.provider) ?? null });
  }
  return found;
}

function viewSums(row: UsageSums) {
  return {
    requests: row.requests,
    failed: row.failed,
    prompt_tokens: row.prompt,
    completion_tokens: row.completion,
    reasoning_tokens: row.reasoning,
    cached_tokens: row.cached,
    total_tokens: row.prompt + row.completion,
    images: row.images,
    seconds: row.seconds,
    cost_micro_usdc: Number(row.charged),
    cost_usd: formatUsd(row.charged),
  };
}

/** Adds up all rows. */
export function viewTotals(rows: readonly UsageRow[]) {
  const totals: { -readonly [Name in keyof UsageRow]: UsageRow[Name] } = { ...NOTHING };
  for (const row of rows) {
    totals.requests += row.requests;
    totals.failed += row.failed;
    totals.charged += row.charged;
    totals.prompt += row.prompt;
    totals.completion += row.completion;
    totals.reasoning += row.reasoning;
    totals.cached += row.cached;
    totals.images += row.images;
    totals.seconds += row.seconds;
  }
  return viewSums(totals);
}

/** Writes the rows as CSV. The columns are the members of the rows. */
export function usageCsv(rows: readonly Readonly<Record<string, Cell>>[], by: readonly UsageGroup[]): string {
  const columns = Object.keys({ ...groupsOf(NOTHING, by, NO_NAMES), ...viewSums(NOTHING) });
  const lines = rows.map((row) =>
    csvLine(columns.map((name) => (name === 'cost_usd' ? csvUsd(BigInt(row['cost_micro_usdc']!)) : row[name]!))),
  );
  return csvLine(columns) + lines.join('');
}

const NO_NAMES: UsageNames = { keys: new Map(), providers: new Map() };

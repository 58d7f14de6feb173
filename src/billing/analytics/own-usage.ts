import { loadStatements, type Query } from '#store';
import { DAY_MS, dateOf, type DayRange, MEMBER_TAG } from './call-facts.ts';
import { findState } from './roll-up-state.ts';

/** The fields by which an account's rows can be grouped. `model` is the service, of any primitive. */
export const USAGE_GROUPS = ['day', 'week', 'month', 'model', 'key', 'member', 'provider', 'primitive'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

const MONDAY = 4;
/**
 * The groups of time, the smallest first, each with the first UTC day of the period that a day is in, in days since
 * 1970-01-01.
 */
export const PERIODS = {
  day: (day: number) => day,
  week: (day: number) => day - ((((day - MONDAY) % 7) + 7) % 7),
  month: (day: number) => Math.floor(Date.parse(`${dateOf(day).slice(0, 7)}-01`) / DAY_MS),
} as const satisfies Partial<Record<UsageGroup, (day: number) => number>>;
type Period = keyof typeof PERIODS;

/** The smallest group of time of a question. undefined: all days together. */
export const periodOf = (groups: readonly UsageGroup[]): Period | undefined =>
  groups.find((group): group is Period => Object.hasOwn(PERIODS, group));

export interface UsageQuery {
  readonly account: string;
  readonly range: DayRange;
  readonly groups: readonly UsageGroup[];
  /** Also grouped by the values of this tag. MEMBER_TAG, if `member` is in the groups. */
  readonly tag?: string | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly provider?: string | undefined;
  readonly primitive?: string | undefined;
}

/** Sums of an account's calls. `charged` is micro-USD. */
export interface UsageSums {
  readonly requests: number;
  readonly failed: number;
  readonly charged: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
  readonly images: number;
  readonly seconds: number;
}

/** Fields that the question doesn't group by are 0 or empty. So are fields that a call did not have. */
export interface UsageRow extends UsageSums {
  /** The first day of the period, in days since 1970-01-01. */
  readonly day: number;
  readonly model: string;
  readonly key: string;
  readonly provider: string;
  readonly primitive: string;
  /** The value of the tag of the question, or the member; empty for calls without it. */
  readonly tag: string;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', ['ownUsage', 'ownTagged', 'ownTagNames']);

/** The most rows of one answer. */
export const USAGE_ROWS_MAX = 50_000;

/**
 * Reads the sums of an account's calls, by day and then by cost, the highest first. Returns null if there are more than
 * USAGE_ROWS_MAX rows.
 */
export async function findUsage(
  query: Query,
  { account, range, groups, tag, model = '', key = '', provider = '', primitive = '' }: UsageQuery,
): Promise<{ readonly rows: readonly UsageRow[]; readonly asOf: number } | null> {
  const period = periodOf(groups);
  const apart = [period !== undefined, ...COLUMNS.map((group) => groups.includes(group))].map(Number);
  const filters = [model, key, provider, primitive];
  const params = [account, range.first, range.last, ...filters, ...apart, USAGE_ROWS_MAX + 1];
  const usage = await (tag === undefined ? query(SQL.ownUsage, params) : query(SQL.ownTagged, [...params, tag]));
  if (usage.length > USAGE_ROWS_MAX) return null;
  const rows = inPeriods(
    period,
    usage.map((row) => ({
      day: Number(row['day']),
      model: row['service'] as string,
      key: row['key'] as string,
      provider: row['provider'] as string,
      primitive: row['primitive'] as string,
      tag: (row['value'] as string | undefined) ?? '',
      requests: Number(row['requests']),
      failed: Number(row['failed']),
      charged: row['charged'] as bigint,
      prompt: Number(row['prompt']),
      completion: Number(row['completion']),
      reasoning: Number(row['reasoning']),
      cached: Number(row['cached']),
      images: Number(row['images']),
      seconds: Number(row['seconds']),
    })),
  );
  return { rows: sortUsage(rows), asOf: (await findState(query)).asOf };
}

/** By day and then by cost, the highest first. */
export const sortUsage = (rows: UsageRow[]): readonly UsageRow[] =>
  rows.sort((a, b) => a.day - b.day || Number(b.charged - a.charged) || b.requests - a.requests || byName(a, b));

/** The names of the tags that an account's calls of these days have, in order. */
export const findTagNames = async (query: Query, account: string, { first, last }: DayRange) =>
  (await query(SQL.ownTagNames, [account, first, last]))
    .map((row) => row['tag'] as string)
    .filter((tag) => tag !== MEMBER_TAG);

const COLUMNS = ['model', 'key', 'provider', 'primitive'] as const;

function inPeriods(period: Period | undefined, rows: readonly UsageRow[]): UsageRow[] {
  if (period === undefined || period === 'day') return [...rows];
  const sums = new Map<string, UsageRow>();
  for (const each of rows) {
    const row = { ...each, day: PERIODS[period](each.day) };
    const name = `${row.day}\n${nameOf(row)}`;
    const before = sums.get(name);
    sums.set(name, before === undefined ? row : { ...row, ...added(before, row) });
  }
  return [...sums.values()];
}

export const added = (one: UsageSums, other: UsageSums): UsageSums => ({
  requests: one.requests + other.requests,
  failed: one.failed + other.failed,
  charged: one.charged + other.charged,
  prompt: one.prompt + other.prompt,
  completion: one.completion + other.completion,
  reasoning: one.reasoning + other.reasoning,
  cached: one.cached + other.cached,
  images: one.images + other.images,
  seconds: one.seconds + other.seconds,
});

const nameOf = ({ model, key, provider, primitive, tag }: UsageRow): string =>
  [model, key, provider, primitive, tag].join('\n');
const byName = (a: UsageRow, b: UsageRow): number => (nameOf(a) < nameOf(b) ? -1 : 1);

import { loadStatements, type Query, type Row, type Statement } from '#store';
import { DAY_MS, dateOf, type DayRange, daysOf, MEMBER_TAG } from './call-facts.ts';
import { findState } from './roll-up-state.ts';

/**
 * The fields by which calls can be grouped. `account` is for a question about all accounts, `model` is the service, of
 * any primitive.
 */
export const USAGE_GROUPS = [
  'day',
  'week',
  'month',
  'account',
  'model',
  'key',
  'member',
  'provider',
  'primitive',
] as const;
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
  /** null: all accounts. */
  readonly account: string | null;
  readonly range: DayRange;
  readonly groups: readonly UsageGroup[];
  /** Also grouped by the values of this tag. MEMBER_TAG, if `member` is in the groups. */
  readonly tag?: string | undefined;
  readonly model?: string | undefined;
  readonly key?: string | undefined;
  readonly provider?: string | undefined;
  readonly primitive?: string | undefined;
}

/** Sums of calls. `charged` is micro-USD. */
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
  readonly account: string;
  readonly model: string;
  readonly key: string;
  readonly provider: string;
  readonly primitive: string;
  /** The value of the tag of the question, or the member; empty for calls without it. */
  readonly tag: string;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', [
  'usageOfDays',
  'tagsOfDays',
  'tagNames',
  'accountsOfDays',
]);

/** The most rows of one answer. */
export const USAGE_ROWS_MAX = 50_000;

/**
 * Reads the sums of calls, by day and then by cost, the highest first. Returns null if there are more than
 * USAGE_ROWS_MAX rows.
 */
export async function findUsage(
  query: Query,
  usage: UsageQuery,
): Promise<{ readonly rows: readonly UsageRow[]; readonly asOf: number } | null> {
  const period = periodOf(usage.groups);
  let rows: readonly UsageRow[] = [];
  for (const part of period === 'day' ? [{ ...usage.range, day: null }] : partsOf(usage.range, period)) {
    rows = rows.concat(await findRows(query, usage, part));
    if (rows.length > USAGE_ROWS_MAX) return null;
  }
  return { rows: sortUsage(rows), asOf: (await findState(query)).asOf };
}

export interface UsagePart extends DayRange {
  /** The day of the rows: the first one of the period. */
  readonly day: number;
}

/** The days of each period. */
export function partsOf(range: DayRange, period: Period | undefined): readonly UsagePart[] {
  if (period === undefined) return [{ ...range, day: 0 }];
  const parts = new Map<number, UsagePart>();
  for (const each of daysOf(range)) {
    const day = PERIODS[period](each);
    parts.set(day, { first: parts.get(day)?.first ?? each, last: each, day });
  }
  return [...parts.values()];
}

/** The sums of UTC days. With `day: null` the rows have a column with their day. */
export async function findRows(
  query: Query,
  usage: UsageQuery,
  { first, last, day }: DayRange & { readonly day: number | null },
): Promise<readonly UsageRow[]> {
  const { account, tag, model = '', key = '', provider = '', primitive = '' } = usage;
  const params = [account ?? '', first, last, model, key, provider, primitive, USAGE_ROWS_MAX + 1];
  const read = async (name: 'usageOfDays' | 'tagsOfDays', more: readonly string[]) =>
    (await query(statementOf(name, usage), [...params, ...more])).map((row) => rowOf(row, day));
  const rows = await read('usageOfDays', []);
  return tag === undefined || rows.length > USAGE_ROWS_MAX ? rows : apart(rows, await read('tagsOfDays', [tag]));
}

/** The columns of the groups, as in the statements. */
const COLUMNS = {
  day: 'day',
  account: 'account',
  model: 'service',
  key: 'key',
  provider: 'provider',
  primitive: 'primitive',
} as const satisfies Partial<Record<UsageGroup, string>>;
const ALL_COLUMNS = Object.values(COLUMNS).join(', ');
/** The group of a question without groups. */
const ONE_GROUP = "CAST('' AS TEXT)";

const statements = new Map<string, Statement>();

/**
 * A statement with the columns of the question alone: with all of them, a million calls take twice the time, also if
 * some are made equal.
 */
function statementOf(name: 'usageOfDays' | 'tagsOfDays', { account, groups }: UsageQuery): Statement {
  const columns = Object.entries(COLUMNS).filter(([group]) => (groups as readonly string[]).includes(group));
  const short = columns.map(([group]) => group.slice(0, 4)).join('');
  const full = `analytics/${name}.${account === null ? 'all' : 'one'}.${short}`;
  let statement = statements.get(full);
  if (statement === undefined) {
    const text = SQL[name].text.replaceAll(ALL_COLUMNS, columns.map(([, column]) => column).join(', ') || ONE_GROUP);
    // The parameter stays, so that the others keep their numbers.
    statement = { name: full, text: account === null ? text.replace('account = $1', "$1 = ''") : text };
    statements.set(full, statement);
  }
  return statement;
}

const rowOf = (row: Row, day: number | null): UsageRow => ({
  day: day ?? Number(row['day']),
  account: textIn(row, 'account'),
  model: textIn(row, 'service'),
  key: textIn(row, 'key'),
  provider: textIn(row, 'provider'),
  primitive: textIn(row, 'primitive'),
  tag: textIn(row, 'value'),
  requests: Number(row['requests']),
  failed: Number(row['failed']),
  charged: row['charged'] as bigint,
  prompt: Number(row['prompt']),
  completion: Number(row['completion']),
  reasoning: Number(row['reasoning']),
  cached: Number(row['cached']),
  images: Number(row['images']),
  seconds: Number(row['seconds']),
});
const textIn = (row: Row, column: string): string => (row[column] as string | undefined) ?? '';

/** The rows of tagged calls, and what is left of all for the calls without the tag. */
function apart(all: readonly UsageRow[], tagged: readonly UsageRow[]): readonly UsageRow[] {
  const rest = new Map(all.map((row) => [nameOf(row), row]));
  for (const row of tagged) {
    const name = nameOf({ ...row, tag: '' });
    const before = rest.get(name);
    if (before !== undefined) rest.set(name, { ...before, ...less(before, row) });
  }
  return [...tagged, ...[...rest.values()].filter(({ requests, failed }) => requests > 0 || failed > 0)];
}

/** By day and then by cost, the highest first. */
export const sortUsage = (rows: readonly UsageRow[]): readonly UsageRow[] =>
  rows.toSorted((a, b) => a.day - b.day || Number(b.charged - a.charged) || b.requests - a.requests || byName(a, b));

/** The names of the tags that calls of these days have, in order. `account`: null for those of all accounts. */
export async function findTagNames(query: Query, account: string | null, { first, last }: DayRange) {
  const text = SQL.tagNames.text.replace('account = $1', "$1 = ''");
  const statement = account === null ? { name: `${SQL.tagNames.name}.all`, text } : SQL.tagNames;
  return (await query(statement, [account ?? '', first, last]))
    .map((row) => row['tag'] as string)
    .filter((tag) => tag !== MEMBER_TAG);
}

/** The accounts that have calls on these UTC days. */
export const findAccounts = async (query: Query, { first, last }: DayRange): Promise<readonly string[]> =>
  (await query(SQL.accountsOfDays, [first, last])).map((row) => row['account'] as string);

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

const less = (one: UsageSums, other: UsageSums): UsageSums => ({
  requests: one.requests - other.requests,
  failed: one.failed - other.failed,
  charged: one.charged - other.charged,
  prompt: one.prompt - other.prompt,
  completion: one.completion - other.completion,
  reasoning: one.reasoning - other.reasoning,
  cached: one.cached - other.cached,
  images: one.images - other.images,
  seconds: one.seconds - other.seconds,
});

const nameOf = ({ day, account, model, key, provider, primitive, tag }: UsageRow): string =>
  [day, account, model, key, provider, primitive, tag].join('\n');
const byName = (a: UsageRow, b: UsageRow): number => (nameOf(a) < nameOf(b) ? -1 : 1);

import { loadStatements, rowsParam, type Query, type Database } from '#store';
import { DEVELOPMENT, DEVELOPMENT_HASH, type DayRange, DAY_MS } from './call-facts.ts';

/** Which days and calls are public. */
export interface PublicRange {
  /** The last visible day. */
  readonly until: number;
  /** A day with fewer active users is hidden. For a service, a day with fewer users of this service. */
  readonly usersMin: number;
  /** Whether calls of the development account count. */
  readonly development: boolean;
}

export interface Users {
  readonly byDay: ReadonlyMap<number, number>;
  /** Active users by day who were not active earlier in the range. */
  readonly newcomers: ReadonlyMap<number, number>;
  /** The account hash that no count includes. */
  readonly without: bigint;
  /** Whether a day is hidden. A day without calls is hidden only if it is after the last visible day. */
  isHidden(day: number, hasCalls: boolean): boolean;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', ['hiddenServices', 'usersByDay']);
/** A hash that no account has. */
const NOBODY_HASH = 0n;
/** Days whose users `recentUsers` counts. */
const RECENT_DAYS = 7;

/** Reads the active users of each day, and which days are hidden because of them. */
export async function findUsers(query: Query, { first, last }: DayRange, publicRange: PublicRange): Promise<Users> {
  const without = publicRange.development ? NOBODY_HASH : DEVELOPMENT_HASH;
  const rows = await query(SQL.usersByDay, [first, last, without]);
  const byDay = new Map(rows.map((row) => [Number(row['day']), Number(row['users'])]));
  const newcomers = new Map(rows.map((row) => [Number(row['day']), Number(row['newcomers'])]));
  return {
    byDay,
    newcomers,
    without,
    isHidden: (day, hasCalls) => day > publicRange.until || (hasCalls && (byDay.get(day) ?? 0) < publicRange.usersMin),
  };
}

/** The account that doesn't count as a user. Empty if all accounts count. */
const uncountedAccount = ({ development }: PublicRange): string => (development ? '' : DEVELOPMENT);

interface HiddenServices {
  has(day: number, primitive: string, service: string): boolean;
  /** The hidden days as rows (day, primitive, service), for a parameter of a statement. */
  readonly text: string;
}

/** Finds the days on which a service was called but had too few users, for one service or for all. */
export async function findHiddenServices(
  query: Query,
  { first, last }: DayRange,
  publicRange: PublicRange,
  { primitive, service } = { primitive: '', service: '' },
): Promise<HiddenServices> {
  if (publicRange.usersMin === 0) return { has: () => false, text: rowsParam([]) };
  const development = publicRange.development ? 1 : 0;
  const params = [first, last, development, uncountedAccount(publicRange), publicRange.usersMin, primitive, service];
  const rows = await query(SQL.hiddenServices, params);
  const hidden = rows.map((row) => [Number(row['day']), row['primitive'] as string, row['service'] as string] as const);
  const keys = new Set(hidden.map((each) => keyOf(...each)));
  return { has: (...parts) => keys.has(keyOf(...parts)), text: rowsParam(hidden) };
}

const keyOf = (day: number, primitive: string, service: string): string => `${day} ${primitive} ${service}`;

/**
 * Counts the users that were active in the last 7 days, without the development account. `now` is in epoch
 * milliseconds.
 */
export async function recentUsers(database: Pick<Database, 'query'>, now: number): Promise<number> {
  const today = Math.floor(now / DAY_MS);
  const rows = await database.query(SQL.usersByDay, [today - RECENT_DAYS + 1, today, DEVELOPMENT_HASH]);
  return rows.reduce((users, row) => users + Number(row['newcomers']), 0);
}

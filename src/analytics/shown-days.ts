import { loadStatement, type Query } from '#store';
import { DEVELOPMENT_HASH } from './call-facts.ts';
import type { DayRange } from './day-range.ts';

/** The days and calls that everybody may see. */
export interface Shown {
  /** The last day that is shown. */
  readonly until: number;
  /** A day with fewer active users is not shown. */
  readonly usersMin: number;
  /** Calls of the development account count. */
  readonly development: boolean;
}

interface Users {
  /** Active users by day. */
  readonly byDay: ReadonlyMap<number, number>;
  /** The hash that is left out of all counts. */
  readonly without: bigint;
  /** A day on which nothing was called is hidden by its date alone. */
  isHidden(day: number, hasCalls: boolean): boolean;
}

const USERS_BY_DAY = loadStatement(import.meta.url, './sql/users-by-day.sql');
/** No account has it. */
const NOBODY_HASH = 0n;

/** The active users of each day, and the days that are not shown for their sake. */
export async function findUsers(query: Query, { first, last }: DayRange, shown: Shown): Promise<Users> {
  const without = shown.development ? NOBODY_HASH : DEVELOPMENT_HASH;
  const rows = await query(USERS_BY_DAY, [first, last, without]);
  const byDay = new Map(rows.map((row) => [Number(row['day']), Number(row['users'])]));
  return {
    byDay,
    without,
    isHidden: (day, hasCalls) => day > shown.until || (hasCalls && (byDay.get(day) ?? 0) < shown.usersMin),
  };
}

import { loadStatement, type Database } from '#store';
import { DEVELOPMENT_HASH } from './call-facts.ts';
import { DAY_MS } from './day-range.ts';

const USERS = loadStatement(import.meta.url, './sql/users-by-day.sql');

const DAYS = 7;

/**
 * Counts the users that were active in the last 7 days, without the development account. `now` is in epoch
 * milliseconds.
 */
export async function recentUsers(database: Pick<Database, 'query'>, now: number): Promise<number> {
  const today = Math.floor(now / DAY_MS);
  const rows = await database.query(USERS, [today - DAYS + 1, today, DEVELOPMENT_HASH]);
  return rows.reduce((users, row) => users + Number(row['newcomers']), 0);
}

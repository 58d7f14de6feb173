import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadStatements, rowsParam, type Query, type Row, type Statement } from '#store';

const SQL = loadStatements(import.meta.url, '../sql/statement.sql', [
  'resolvedCalls',
  'resolvedCallsOfDays',
  'chargedCalls',
]);

/** Epoch milliseconds. `until` is exclusive. */
export interface TimeRange {
  readonly from: number;
  readonly until: number;
}

/** Rows that are read at once: a few milliseconds of the event loop. */
const PAGE = 1_000;

/**
 * The calls of an account that ended in a time, in pages, in the order in which they began. No call of the time may be
 * in an archive. All pages are of one moment if `query` reads from one snapshot.
 */
export const resolvedCalls = (query: Query, account: string, range: TimeRange) =>
  inPages(query, SQL.resolvedCalls, account, range);

/** The same of those that ended on some of its UTC days, in days since 1970-01-01. */
export const resolvedCallsOfDays = (query: Query, account: string, range: TimeRange, days: readonly number[]) =>
  inPages(query, SQL.resolvedCallsOfDays, account, range, [rowsParam(days.map((day) => [day]))]);

/** Charged calls alone, with what a statement needs. */
export const chargedCalls = (query: Query, account: string, range: TimeRange) =>
  inPages(query, SQL.chargedCalls, account, range);

async function* inPages(
  query: Query,
  statement: Statement,
  account: string,
  { from, until }: TimeRange,
  more: readonly string[] = [],
): AsyncGenerator<readonly Row[], void, undefined> {
  for (let place: readonly [number | bigint, string] = [0, '']; ;) {
    const rows = await query(statement, [account, from, until, ...place, PAGE, ...more]);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    place = [last['created_at'] as bigint, last['id'] as string];
    // Lets other work of the event loop run in between.
    await nextTurn();
  }
}

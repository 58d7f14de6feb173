import { loadStatements, type Database, type Query } from '#store';
import type { JournalPlace } from '#billing/resolved';
import { DAY_MS } from './call-facts.ts';
import { firstHour } from './sums.ts';

export interface RollUpState {
  /** Increases with every part that is added. */
  readonly version: bigint;
  /** When the newest counted call was resolved, in epoch milliseconds; 0 before the first. */
  readonly asOf: number;
  /** When a gateway last added to the sums, in epoch milliseconds. */
  readonly rolledAt: number;
  /** When a gateway last searched for new accounts, in epoch milliseconds. */
  readonly accountsAt: number;
  /** The first day of usage_days whose rows were not removed because of their age. */
  readonly usageSince: number;
}

const SQL = loadStatements(import.meta.url, './sql/roll-up.sql', [
  'findState',
  'findCursors',
  'keepUsageSince',
  'deleteOldUsage',
  'deleteOldTags',
  'deleteOldTimes',
  'deleteOldAttempts',
  'deleteOldAccountSums',
  'deleteOldOfferSums',
  'stepVersion',
  'forgetCursors',
]);
const FORGET = [{ statement: SQL.stepVersion }, { statement: SQL.forgetCursors }];

export async function findState(query: Query): Promise<RollUpState> {
  const state = (await query(SQL.findState))[0]!;
  return {
    version: state['version'] as bigint,
    asOf: Number(state['as_of']),
    rolledAt: Number(state['rolled_at']),
    accountsAt: Number(state['accounts_at']),
    usageSince: Number(state['usage_since']),
  };
}

/** Places by chain of the journal. On PostgreSQL each start of a gateway begins a new chain. */
export type Cursors = ReadonlyMap<string, JournalPlace>;

/** Reads the places in the journal up to which calls are added. */
export async function findCursors(query: Query): Promise<Cursors> {
  const cursors = new Map<string, JournalPlace>();
  for (const row of await query(SQL.findCursors)) {
    const chain = row['chain'] as string;
    cursors.set(chain, { chain, n: Number(row['n']), position: Number(row['position']) });
  }
  return cursors;
}

/**
 * Forgets the places, so that the next turns of a roll-up compute the sums from the whole journal. If a part is being
 * added, its transaction fails.
 */
export async function forgetSums(database: Pick<Database, 'batch'>): Promise<void> {
  await database.batch(FORGET);
}

/** Days for which times and attempts are kept. The pages show 30 of them. */
const TIMES_DAYS = 60;

interface OldUsageOptions {
  readonly database: Pick<Database, 'batch'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Days for which accounts' rows are kept, including today. */
  readonly days: number;
}

/**
 * Removes old rows of accounts, times and attempts. `sweep` removes at most `batch` rows of each table and resolves
 * with the highest number of removed rows.
 */
export function createOldUsage({ database, now, days }: OldUsageOptions) {
  return {
    async sweep(batch: number): Promise<number> {
      const today = Math.floor(now() / DAY_MS);
      const first = today - days + 1;
      // The first kept day is stored in the same transaction, so that the audit knows which rows may be missing.
      const [, ...removed] = await database.batch([
        { statement: SQL.keepUsageSince, params: [first] },
        { statement: SQL.deleteOldUsage, params: [first, batch] },
        { statement: SQL.deleteOldTags, params: [first, batch] },
        { statement: SQL.deleteOldTimes, params: [today - TIMES_DAYS + 1, batch] },
        { statement: SQL.deleteOldAttempts, params: [today - TIMES_DAYS + 1, batch] },
        { statement: SQL.deleteOldAccountSums, params: [first, firstHour(now()), batch] },
        { statement: SQL.deleteOldOfferSums, params: [first, firstHour(now()), batch] },
      ]);
      return Math.max(...removed.map((rows) => rows.length));
    },
  };
}

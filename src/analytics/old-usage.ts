import { loadStatement, type Database } from '#store';
import { DAY_MS } from './day-range.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const SINCE = load('keep-usage-since');
const DELETE = load('delete-old-usage');
const DELETE_TIMES = load('delete-old-times');
const DELETE_ATTEMPTS = load('delete-old-attempts');
/** Days whose times and attempts are kept: 30 of them are shown. */
const TIMES_DAYS = 60;

interface OldUsageOptions {
  readonly database: Pick<Database, 'batch'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Days whose rows are kept, today included. */
  readonly days: number;
}

/**
 * Rows of accounts, times and attempts that are too old. `sweep` removes at most `batch` of each, and resolves with the
 * highest number.
 */
export function createOldUsage({ database, now, days }: OldUsageOptions) {
  return {
    async sweep(batch: number): Promise<number> {
      const today = Math.floor(now() / DAY_MS);
      const first = today - days + 1;
      // With the first day in the same step: whoever compares knows what may be missing.
      const [, ...removed] = await database.batch([
        { statement: SINCE, params: [first] },
        { statement: DELETE, params: [first, batch] },
        { statement: DELETE_TIMES, params: [today - TIMES_DAYS + 1, batch] },
        { statement: DELETE_ATTEMPTS, params: [today - TIMES_DAYS + 1, batch] },
      ]);
      return Math.max(...removed.map((rows) => rows.length));
    },
  };
}

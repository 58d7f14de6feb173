import { loadStatement, type Database } from '#store';
import { DAY_MS } from './day-range.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const SINCE = load('keep-usage-since');
const DELETE = load('delete-old-usage');
const DELETE_TIMES = load('delete-old-times');
const DELETE_ATTEMPTS = load('delete-old-attempts');
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
        { statement: SINCE, params: [first] },
        { statement: DELETE, params: [first, batch] },
        { statement: DELETE_TIMES, params: [today - TIMES_DAYS + 1, batch] },
        { statement: DELETE_ATTEMPTS, params: [today - TIMES_DAYS + 1, batch] },
      ]);
      return Math.max(...removed.map((rows) => rows.length));
    },
  };
}

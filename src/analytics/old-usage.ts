import { loadStatement, type Database } from '#store';
import { DAY_MS } from './day-range.ts';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const SINCE = load('keep-usage-since');
const DELETE = load('delete-old-usage');

interface OldUsageOptions {
  readonly database: Pick<Database, 'batch'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Days whose rows are kept, today included. */
  readonly days: number;
}

/** Rows of accounts that are too old. `sweep` removes at most `batch` of them and resolves with how many those were. */
export function createOldUsage({ database, now, days }: OldUsageOptions) {
  return {
    async sweep(batch: number): Promise<number> {
      const first = Math.floor(now() / DAY_MS) - days + 1;
      // With the first day in the same step: whoever compares knows what may be missing.
      const [, removed] = await database.batch([
        { statement: SINCE, params: [first] },
        { statement: DELETE, params: [first, batch] },
      ]);
      return removed!.length;
    },
  };
}

import type { SqliteDatabase } from '#store';
import type { Engine } from './ledger-engine.ts';
import type { OperationResult } from './ledger-operations.ts';
import type { SqliteBatch } from './ledger-sqlite-program.ts';

/** One writer at a time over all restarts, so one chain. */
export const EMBEDDED_CHAIN = 'main';

/** The embedded engine: a group is one message to the database's worker and one transaction there. */
export function createSqliteEngine(database: SqliteDatabase, now: () => number): Engine {
  const program = database.program(new URL('./ledger-sqlite-program.ts', import.meta.url).href);
  return {
    chain: EMBEDDED_CHAIN,
    begin: () => (operations) =>
      program({ chain: EMBEDDED_CHAIN, now: now(), operations } satisfies SqliteBatch) as Promise<
        readonly OperationResult[]
      >,
    isConflict: () => false,
    close: async () => {},
  };
}

import { DatabaseError } from '../database.ts';
import type { LogHead } from './record.ts';
import type { SharedProgress } from './shared-progress.ts';
import { openLogWriter, type LogStart } from './writer.ts';

/** The log of the embedded ledger. Records are appended one at a time. */
export interface LedgerLog {
  /** The last record on disk. */
  readonly head: LogHead;
  /**
   * Appends one record, which is on disk when the promise resolves. If it rejects with DatabaseError, the log is
   * unchanged. It waits if the tables are too far behind, so that a restart has little to replay.
   */
  append(at: number, payload: string): Promise<void>;
  close(): Promise<void>;
}

/** How far the tables may be behind, in bytes of log: about 15,000 calls, or half a second of a restart. */
const BEHIND_MAX = 8 * 1024 * 1024;

interface Tables {
  /** Applies the whole log to the tables. */
  follow(): Promise<void>;
  /** Makes the tables follow in the background. */
  wake(): void;
}

export function openLedgerLog(start: LogStart, progress: SharedProgress, tables: Tables): LedgerLog {
  const writer = openLogWriter(start);
  let isClosed = false;
  return {
    get head() {
      return writer.head;
    },
    async append(at, payload) {
      if (isClosed) throw new DatabaseError('The database is closed', { code: 'closed', unavailable: true });
      if (progress.state === 'stopped' || progress.end - progress.followed > BEHIND_MAX)
        await tables.follow().catch(unavailable);
      await writer.append(at, payload);
      progress.end = writer.head.position;
      if (!progress.wake()) tables.wake();
    },
    close() {
      isClosed = true;
      return writer.close();
    },
  };
}

/** Refuses an append because the tables cannot follow the log. */
function unavailable(error: unknown): never {
  if (error instanceof DatabaseError && error.unavailable) throw error;
  const message = `The tables cannot follow the log of the ledger: ${(error as Error).message}`;
  throw new DatabaseError(message, { code: 'behind', unavailable: true, cause: error });
}

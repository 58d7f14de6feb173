import { DatabaseError } from '../database.ts';
import type { LogHead } from './record.ts';
import type { SharedProgress } from './shared-progress.ts';
import { openLogWriter, type LogStart } from './writer.ts';

/** The log of the embedded ledger, to which one record is added at a time. */
export interface LedgerLog {
  /** The end of what is on disk. */
  readonly head: LogHead;
  /**
   * Appends the rows of a group; on disk when the promise resolves. Rejects with DatabaseError, and then the log is as
   * it was. Waits while the tables are too far behind, so that a restart has little to replay.
   */
  append(at: number, payload: string): Promise<void>;
  close(): Promise<void>;
}

/** The most that the tables may be behind, in bytes of log: about 15,000 calls, half a second of a restart. */
const BEHIND_MAX = 8 * 1024 * 1024;

interface Tables {
  /** Brings the tables up to the log. */
  follow(): Promise<void>;
  /** Lets them follow in the background. */
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

/** Nothing may be added to a log that its tables cannot follow. */
function unavailable(error: unknown): never {
  if (error instanceof DatabaseError && error.unavailable) throw error;
  const message = `The tables cannot follow the log of the ledger: ${(error as Error).message}`;
  throw new DatabaseError(message, { code: 'behind', unavailable: true, cause: error });
}

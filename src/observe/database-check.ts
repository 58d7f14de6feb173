import { DatabaseError } from '#store';

interface DatabaseCheckOptions {
  /** A small write that is durable when it resolves. */
  readonly write: () => Promise<void>;
  /** Called when the finding changes, with the error. */
  readonly onChange: (works: boolean, error?: unknown) => void;
  /** Longest wait for the write. */
  readonly timeoutMs?: number;
  /** How long a finding is used, on the monotonic clock. */
  readonly keepMs?: number;
}

/** Full disks: SQLite's SQLITE_FULL, PostgreSQL's disk_full. */
const FULL: ReadonlySet<string> = new Set(['sqlite_13', '53100']);
/** Read-only: SQLite's SQLITE_READONLY, PostgreSQL's read_only_sql_transaction. */
const READ_ONLY = /^(?:sqlite_8|25006)$/;

/**
 * Whether the database takes writes: `ok`, or the problem in words without names and addresses. A database can
 * answer questions for a long time after its disk is full, while no call can be taken. So this writes, but at most
 * once in `keepMs`.
 */
export function createDatabaseCheck({
  write,
  onChange,
  timeoutMs = 1_500,
  keepMs = 1_000,
}: DatabaseCheckOptions): () => Promise<string> {
  let running: Promise<string> | null = null;
  let found = { state: 'ok', at: -Infinity };

  const look = async (): Promise<string> => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(
        () => reject(new Error(`the database did not take a write within ${timeoutMs} ms`)),
        timeoutMs,
      );
    });
    let state = 'ok';
    let reason: unknown;
    try {
      await Promise.race([write(), late]);
    } catch (error) {
      reason = error;
      state = words(error);
    } finally {
      clearTimeout(timer);
    }
    if ((state === 'ok') !== (found.state === 'ok')) onChange(state === 'ok', reason);
    found = { state, at: performance.now() };
    return state;
  };

  return async () => {
    if (performance.now() - found.at < keepMs) return found.state;
    running ??= look().finally(() => {
      running = null;
    });
    return running;
  };
}

function words(error: unknown): string {
  if (!(error instanceof DatabaseError)) return 'takes no writes in time';
  if (FULL.has(error.code)) return 'cannot be written to: its disk is full';
  return READ_ONLY.test(error.code) ? 'cannot be written to: it is read-only' : 'cannot be reached or written to';
}

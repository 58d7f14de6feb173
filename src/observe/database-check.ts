import { DatabaseError } from '#store';

interface DatabaseCheckOptions {
  /** A small write. It resolves when the write is durable. */
  readonly write: () => Promise<void>;
  /** Called when the result changes, with the error. */
  readonly onChange: (works: boolean, error?: unknown) => void;
  /** Longest wait for the write, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long a result is used, in milliseconds of the monotonic clock. */
  readonly keepMs?: number;
}

/** Error codes for a full disk: SQLite's SQLITE_FULL, PostgreSQL's disk_full. */
const FULL: ReadonlySet<string> = new Set(['sqlite_13', '53100']);
/** Error codes for a read-only database: SQLite's SQLITE_READONLY, PostgreSQL's read_only_sql_transaction. */
const READ_ONLY = /^(?:sqlite_8|25006)$/;

/**
 * Checks whether the database accepts writes. Resolves with `ok`, or with the problem as text without names and
 * addresses. A database with a full disk can still answer queries for a long time while no call can be billed. So the
 * check writes, but at most once in `keepMs`.
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

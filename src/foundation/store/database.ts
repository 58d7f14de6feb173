/** A value that both engines accept and return. Integers are always returned as bigint. */
export type Value = string | bigint | number | null | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

/**
 * One SQL statement from one file, in the subset that both engines support, with parameters `$1 …`. `name` is the
 * file's path without `.sql`; engines cache prepared statements by it.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export interface Step {
  readonly statement: Statement;
  readonly params?: readonly Value[];
}

/**
 * A database, as other modules use it. Errors of the engine become DatabaseError. Its `unavailable` distinguishes a
 * lost connection from a refused statement.
 */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  query(statement: Statement, params?: readonly Value[]): Promise<readonly Row[]>;
  /**
   * Runs all steps in one transaction, all or none. They are durable when the promise resolves. After an `unavailable`
   * error they may or may not have been committed.
   */
  batch(steps: readonly Step[]): Promise<readonly (readonly Row[])[]>;
  /**
   * Reads a snapshot: every query of `run` sees the same state, and writers are not blocked. `program` runs code next
   * to the data of the snapshot; null on PostgreSQL. The statements of `temporary` create tables and views that end
   * with the snapshot. Only these tables can be written.
   *
   * `party`: who requested it, such as an account, see partyOf. A few snapshots are read at once, parties take turns,
   * and one that has too many is refused (`CROWDED`). null for the gateway itself, which does not wait for others.
   */
  snapshot<T>(
    party: string | null,
    run: (query: Query, program: RunProgram | null) => Promise<T>,
    temporary?: readonly Statement[],
  ): Promise<T>;
  close(): Promise<void>;
}

/** Runs the module of this URL in the thread of the database, see Program. */
export type RunProgram = (moduleUrl: string, args: unknown) => Promise<unknown>;
export type Query = (statement: Statement, params?: readonly Value[]) => Promise<readonly Row[]>;

/**
 * The engine refused a statement, or could not be reached (`unavailable`). For violated constraints `code` is
 * `unique_violation`, `check_violation`, `foreign_key_violation` or `not_null_violation` on both engines. Other codes
 * depend on the engine.
 */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  readonly code: string;
  readonly unavailable: boolean;
  /** The disk of the database is full. Nothing can be written until space is freed. */
  readonly full: boolean;
  /** The database answers, and others were first: the statement was not begun. */
  get busy(): boolean {
    return this.code === BUSY;
  }
  constructor(message: string, options: { code: string; unavailable?: boolean; full?: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.code = options.code;
    this.unavailable = options.unavailable ?? false;
    this.full = options.full ?? false;
  }
}

/** See `DatabaseError.busy`. */
export const BUSY = 'busy';
/** The code of a snapshot that was not begun, because its party has too many under way. */
export const CROWDED = 'crowded';

/** SQLite's extended result codes of violated constraints, with the codes that both engines share. */
const CONSTRAINTS: Readonly<Record<number, string>> = {
  275: 'check_violation',
  787: 'foreign_key_violation',
  1299: 'not_null_violation',
  1555: 'unique_violation',
  2067: 'unique_violation',
};
/**
 * Busy, locked, out of memory, read only, I/O error, disk full, cannot open. The state of the machine causes them, not
 * the statement.
 */
export const UNAVAILABLE: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14]);

const SQLITE_FULL = 13;

export function toDatabaseError(message: string, code: number): DatabaseError {
  return new DatabaseError(message, {
    code: CONSTRAINTS[code] ?? `sqlite_${code}`,
    unavailable: UNAVAILABLE.has(code & 0xff),
    full: (code & 0xff) === SQLITE_FULL,
  });
}

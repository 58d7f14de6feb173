/** A value that both engines take and give. Integers always come back as bigint. */
export type Value = string | bigint | number | null | Uint8Array;
export type Row = Readonly<Record<string, Value>>;

/**
 * One SQL statement from one file, in the portable subset, with `$1 …` parameters. `name` is the file's name:
 * engines prepare by it.
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
 * A database, as the rooms above see it. Errors of the engine surface as DatabaseError; `unavailable` tells a lost
 * connection from a refused statement.
 */
export interface Database {
  readonly engine: 'sqlite' | 'postgres';
  query(statement: Statement, params?: readonly Value[]): Promise<readonly Row[]>;
  /**
   * All steps in one transaction: all or none. Durable when the promise resolves; after `unavailable` it may or may
   * not have happened.
   */
  batch(steps: readonly Step[]): Promise<readonly (readonly Row[])[]>;
  /**
   * Reads of one moment: every query of `run` sees the same state, while writers go on. `program` runs code beside the
   * data of that moment; null on PostgreSQL. `temporary` makes tables and views that end with the snapshot; only these
   * can be written.
   */
  snapshot<T>(
    run: (query: Query, program: RunProgram | null) => Promise<T>,
    temporary?: readonly Statement[],
  ): Promise<T>;
  close(): Promise<void>;
}

/** Runs the module of this URL beside the data, see Program. */
export type RunProgram = (moduleUrl: string, args: unknown) => Promise<unknown>;
export type Query = (statement: Statement, params?: readonly Value[]) => Promise<readonly Row[]>;

/**
 * The engine refused a statement, or could not be reached (`unavailable`). `code` is `unique_violation`,
 * `check_violation`, `foreign_key_violation` or `not_null_violation` on both engines, else the engine's own.
 */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  readonly code: string;
  readonly unavailable: boolean;
  /** Its disk is full: nothing can be written until somebody makes room. */
  readonly full: boolean;
  constructor(message: string, options: { code: string; unavailable?: boolean; full?: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.code = options.code;
    this.unavailable = options.unavailable ?? false;
    this.full = options.full ?? false;
  }
}

import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import type { Row, Statement, Step, Value } from './database.ts';
import { MIGRATIONS_TABLE, missingMigrations, type Migration } from './migrations.ts';

/**
 * The worker's start. `lock` is the file whose lock says that this process owns the data directory;
 * null opens a reader.
 */
export interface WorkerSetup {
  readonly path: string;
  readonly lock: string | null;
  readonly migrations: readonly Migration[];
  readonly now: number;
}

export type Work =
  | { readonly kind: 'query'; readonly statement: Statement; readonly params: readonly Value[] }
  | { readonly kind: 'batch'; readonly steps: readonly Step[] }
  | { readonly kind: 'program'; readonly module: string; readonly args: unknown }
  | { readonly kind: 'close' };

export interface Request {
  readonly id: number;
  readonly work: Work;
}

export type Reply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: number };

export type Prepare = (statement: Statement) => StatementSync;

/**
 * Code that runs beside the data: one message in, one message out, all of it inside one transaction. Integers are
 * read as bigint.
 */
export interface Program {
  run(prepare: Prepare, args: unknown): unknown;
}

/** SQLite's result code for "another connection holds the lock". */
const BUSY = 5;

function start(setup: WorkerSetup): void {
  // The lock is the operating system's, taken on an empty file: it falls with the process, however the process ends.
  const guard = setup.lock === null ? null : new DatabaseSync(setup.lock, { timeout: 0 });
  guard?.exec('BEGIN EXCLUSIVE');
  const database = new DatabaseSync(setup.path, { readOnly: setup.lock === null, timeout: 5_000, readBigInts: true });
  if (guard) {
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000',
    );
    migrate(database, setup);
  } else database.exec('BEGIN');
  database.exec('PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY');

  const prepared = new Map<string, StatementSync>();
  const prepare: Prepare = ({ name, text }) => {
    let found = prepared.get(name);
    if (!found) prepared.set(name, (found = database.prepare(text.replaceAll(/\$(?=\d)/g, '?'))));
    return found;
  };
  const query = ({ statement: wanted, params }: Step): readonly Row[] => prepare(wanted).all(...(params ?? []));
  const programs = new Map<string, Program>();

  const perform = async (work: Work): Promise<unknown> => {
    if (work.kind === 'query') return query(work);
    if (work.kind === 'batch') return transaction(database, () => work.steps.map(query));
    if (work.kind === 'close') {
      database.close();
      guard?.close();
      return null;
    }
    let program = programs.get(work.module);
    if (!program) programs.set(work.module, (program = (await import(work.module)) as Program));
    const { run } = program;
    return transaction(database, () => run(prepare, work.args));
  };

  // One after the other, in the order of arrival, also while a program's module is being imported.
  let tail = Promise.resolve();
  parentPort!.on('message', (requests: readonly Request[]) => {
    tail = tail.then(async () => {
      const replies: Reply[] = [];
      for (const { id, work } of requests) {
        try {
          replies.push({ id, ok: true, value: await perform(work) });
        } catch (error) {
          replies.push({ id, ok: false, ...describe(error) });
        }
      }
      parentPort!.postMessage(replies);
    });
  });
}

function transaction<T>(database: DatabaseSync, run: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const value = run();
    database.exec('COMMIT');
    return value;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function migrate(database: DatabaseSync, { migrations, now }: WorkerSetup): void {
  transaction(database, () => {
    database.exec(MIGRATIONS_TABLE);
    const applied = new Set(
      database
        .prepare('SELECT name FROM migrations')
        .all()
        .map((row) => row.name as string),
    );
    for (const { name, text } of missingMigrations(migrations, applied)) {
      database.exec(text);
      database.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)').run(name, now);
    }
  });
}

function describe(error: unknown): { message: string; code: number } {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : 0;
  return { message, code };
}

try {
  start(workerData as WorkerSetup);
  parentPort!.postMessage({ ready: true });
} catch (error) {
  const { message, code } = describe(error);
  parentPort!.postMessage({ ready: false, message, busy: code === BUSY });
  parentPort!.close();
}

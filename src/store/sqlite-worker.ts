import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';
import type { Row, Statement, Step, Value } from './database.ts';
import { MIGRATIONS_TABLE, missingMigrations, type Migration } from './migrations.ts';

/** `lock` is the file whose lock says that this process owns the data directory; null opens a reader. */
export interface ConnectionSetup {
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

/** To the thread. It has one connection at a time; the work that closes it makes room for the next. */
export type Order = { readonly open: ConnectionSetup } | { readonly requests: readonly Request[] };

/** From the thread: to `open`, and to `requests`. */
export type Answer =
  | { readonly opened: true }
  | { readonly refused: { readonly message: string; readonly busy: boolean } }
  | { readonly replies: readonly Reply[] };

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

/** Opens the file and returns what performs one piece of work. Throws what SQLite throws. */
function open(setup: ConnectionSetup): (work: Work) => Promise<unknown> {
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

  return async (work) => {
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

function migrate(database: DatabaseSync, { migrations, now }: ConnectionSetup): void {
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

async function answer(requests: readonly Request[]): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  for (const { id, work } of requests) {
    try {
      replies.push({ id, ok: true, value: await perform(work) });
    } catch (error) {
      replies.push({ id, ok: false, ...describe(error) });
    }
  }
  return replies;
}

const say = (answer: Answer) => parentPort!.postMessage(answer);
const programs = new Map<string, Program>();
let perform: (work: Work) => Promise<unknown>;
let tail = Promise.resolve();

parentPort!.on('message', (order: Order) => {
  // One after the other, in the order of arrival, also while a program's module is being imported.
  if ('requests' in order) tail = tail.then(async () => say({ replies: await answer(order.requests) }));
  else
    try {
      perform = open(order.open);
      say({ opened: true });
    } catch (error) {
      const { message, code } = describe(error);
      say({ refused: { message, busy: code === BUSY } });
      // The thread ends, and with it whatever it has opened.
      parentPort!.close();
    }
});

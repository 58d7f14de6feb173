import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DatabaseError, type Database, type Query, type Row, type Step } from './database.ts';
import { loadMigrations } from './migrations.ts';
import type { Reply, Request, Work, WorkerSetup } from './sqlite-worker.ts';

export interface SqliteDatabase extends Database {
  readonly engine: 'sqlite';
  /**
   * Code that runs in the worker, next to the data. The module exports `run(prepare: Prepare, args: unknown):
   * unknown` (a Program), which is called inside one transaction per message; arguments and answer are cloned.
   * Durable when the promise resolves.
   */
  program(moduleUrl: string): (args: unknown) => Promise<unknown>;
}

/**
 * Opens the embedded database of a data directory (made when missing) in a worker thread, so that no fsync blocks
 * the event loop. One process at a time: a second opener fails with code `in_use` and a message that says what to
 * do.
 */
export async function openSqlite(dataDir: string): Promise<SqliteDatabase> {
  const folder = resolve(dataDir);
  const path = join(folder, 'tollgate.db');
  prepareFolder(folder, path);
  const writer = await startWorker(
    { path, lock: join(folder, 'tollgate.lock'), migrations: loadMigrations(), now: Date.now() },
    folder,
  );

  return {
    engine: 'sqlite',
    query: (statement, params = []) => writer.perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>,
    batch: (steps: readonly Step[]) => writer.perform({ kind: 'batch', steps }) as Promise<readonly (readonly Row[])[]>,
    program: (module) => (args) => writer.perform({ kind: 'program', module, args }),
    async snapshot(run) {
      // A connection of its own: SQLite's readers see the state at their first read and neither wait for the writer
      // nor stop it.
      const reader = await startWorker({ path, lock: null, migrations: [], now: 0 }, folder);
      const query: Query = (statement, params = []) =>
        reader.perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>;
      try {
        return await run(query);
      } finally {
        await reader.close();
      }
    },
    close: () => writer.close(),
  };
}

/** Files that only their owner can read, in a folder whose existence survives a power cut. */
function prepareFolder(folder: string, path: string): void {
  try {
    const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
    closeSync(openSync(path, 'a', 0o600));
    closeSync(openSync(join(folder, 'tollgate.lock'), 'a', 0o600));
    for (const each of made === undefined ? [folder] : [folder, dirname(made)]) {
      const handle = openSync(each, 'r');
      fsyncSync(handle);
      closeSync(handle);
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DatabaseError(
      `The data directory ${folder} cannot be used: ${reason}. Give another one with TOLLGATE_DATA.`,
      {
        code: 'unusable',
        cause,
      },
    );
  }
}

interface Connection {
  perform(work: Work): Promise<unknown>;
  close(): Promise<void>;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

async function startWorker(setup: WorkerSetup, folder: string): Promise<Connection> {
  // Without the flags of this process: a worker refuses some of them (--input-type).
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { workerData: setup, execArgv: [] });
  await new Promise<void>((ready, failed) => {
    worker.once('error', failed);
    worker.once('message', (answer: { ready: boolean; message?: string; busy?: boolean }) => {
      worker.off('error', failed);
      if (answer.ready) ready();
      else
        failed(
          answer.busy
            ? inUse(folder)
            : new DatabaseError(`${setup.path} cannot be opened: ${answer.message}`, { code: 'unusable' }),
        );
    });
  });

  const waiting = new Map<number, Waiting>();
  let outbox: Request[] = [];
  let lastId = 0;
  let ended: DatabaseError | null = null;
  const end = (error: DatabaseError) => {
    ended ??= error;
    for (const { reject } of waiting.values()) reject(ended);
    waiting.clear();
  };
  worker.on('message', (replies: readonly Reply[]) => {
    for (const reply of replies) {
      const waiter = waiting.get(reply.id);
      waiting.delete(reply.id);
      if (reply.ok) waiter?.resolve(reply.value);
      else waiter?.reject(toDatabaseError(reply.message, reply.code));
    }
  });
  worker.on('error', (cause) =>
    end(
      new DatabaseError(`The database worker failed: ${String(cause)}`, { code: 'worker', unavailable: true, cause }),
    ),
  );
  worker.on('exit', () => end(new DatabaseError('The database is closed', { code: 'closed', unavailable: true })));

  const flush = () => {
    worker.postMessage(outbox);
    outbox = [];
  };
  const perform = (work: Work) =>
    new Promise<unknown>((resolve, reject) => {
      if (ended) return reject(ended);
      const id = ++lastId;
      waiting.set(id, { resolve, reject });
      // Whatever is asked in one turn of the event loop travels in one message.
      if (outbox.push({ id, work }) === 1) queueMicrotask(flush);
    });
  return {
    perform,
    async close() {
      if (ended) return;
      const closed = perform({ kind: 'close' });
      ended = new DatabaseError('The database is closed', { code: 'closed', unavailable: true });
      await closed;
      await worker.terminate();
    },
  };
}

function inUse(folder: string): DatabaseError {
  return new DatabaseError(
    `The data directory ${folder} is open in another tollgate process. Use that gateway's admin API, stop it first, or give another directory with TOLLGATE_DATA.`,
    { code: 'in_use' },
  );
}

/** SQLite's extended result codes, in the words that both engines share. */
const CONSTRAINTS: Readonly<Record<number, string>> = {
  275: 'check_violation',
  787: 'foreign_key_violation',
  1299: 'not_null_violation',
  1555: 'unique_violation',
  2067: 'unique_violation',
};
/**
 * Busy, locked, out of memory, read only, I/O error, disk full, cannot open: the machine's state, not the
 * statement's fault.
 */
const UNAVAILABLE: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14]);

const SQLITE_FULL = 13;

function toDatabaseError(message: string, code: number): DatabaseError {
  return new DatabaseError(message, {
    code: CONSTRAINTS[code] ?? `sqlite_${code}`,
    unavailable: UNAVAILABLE.has(code & 0xff),
    full: (code & 0xff) === SQLITE_FULL,
  });
}

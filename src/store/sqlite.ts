import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseError, type Database, type Query, type Row, type Step } from './database.ts';
import { loadMigrations } from './migrations.ts';
import { connect } from './sqlite-thread.ts';

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
  const refused = ({ message, busy }: { readonly message: string; readonly busy: boolean }) =>
    busy ? inUse(folder) : new DatabaseError(`${path} cannot be opened: ${message}`, { code: 'unusable' });
  const writer = await connect(
    { path, lock: join(folder, 'tollgate.lock'), migrations: loadMigrations(), now: Date.now() },
    refused,
  );

  return {
    engine: 'sqlite',
    query: (statement, params = []) => writer.perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>,
    batch: (steps: readonly Step[]) => writer.perform({ kind: 'batch', steps }) as Promise<readonly (readonly Row[])[]>,
    program: (module) => (args) => writer.perform({ kind: 'program', module, args }),
    async snapshot(run) {
      // A connection of its own: SQLite's readers see the state at their first read and neither wait for the writer
      // nor stop it.
      const reader = await connect({ path, lock: null, migrations: [], now: 0 }, refused);
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

function inUse(folder: string): DatabaseError {
  return new DatabaseError(
    `The data directory ${folder} is open in another tollgate process. Use that gateway's admin API, stop it first, or give another directory with TOLLGATE_DATA.`,
    { code: 'in_use' },
  );
}

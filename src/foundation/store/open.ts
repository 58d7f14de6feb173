import { closeSync, existsSync, fsyncSync, openSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  DatabaseError,
  type Database,
  type Query,
  type Row,
  type RunProgram,
  type Statement,
  type Step,
} from './database.ts';
import type { PostgresDatabase } from './postgres.ts';
import { openLedgerLog, type LedgerLog } from './log/ledger-log.ts';
import { hasLog, LOG_FOLDER, removeBefore } from './log/segments.ts';
import { followsLog, shareProgress } from './log/shared-progress.ts';
import { loadMigrations } from './migrations.ts';
import { deniedTo, giveToOwner, makeFolder } from './owner.ts';
import { createSnapshotPlaces } from './snapshot-places.ts';
import { connect } from './sqlite-thread.ts';
import type { OpenRefusal, DatabaseWork } from './sqlite-worker.ts';

export type OpenDatabase = SqliteDatabase | PostgresDatabase;

/**
 * Opens the database and migrates its schema: PostgreSQL if `url` is given (`postgres://…`), else the embedded database
 * in `dataDir`. Throws DatabaseError, whose message says what to do: the directory is in use (`in_use`) or cannot be
 * used (`unusable`), the log of its ledger is missing (`log_gone`), or the server is unreachable. `withoutLog` begins a
 * new log if the log is missing.
 */
export async function openDatabase(options: {
  readonly url?: string | null | undefined;
  readonly dataDir: string;
  readonly withoutLog?: boolean;
}): Promise<OpenDatabase> {
  const { url, dataDir, withoutLog = false } = options;
  if (!url) return openSqlite(dataDir, { withoutLog });
  // Imported on demand, so that the embedded engine starts without PostgreSQL's driver.
  if (/^postgres(ql)?:\/\//.test(url)) return (await import('./postgres.ts')).openPostgres(url);
  throw new DatabaseError(
    `DATABASE_URL must begin with postgres:// or postgresql://; without it the embedded database in ${dataDir} is used`,
    {
      code: 'unusable',
    },
  );
}

export interface SqliteDatabase extends Database {
  readonly engine: 'sqlite';
  /**
   * The log that the ledger writes. The tables follow it, and a statement about these tables sees everything in the
   * log.
   */
  readonly log: LedgerLog;
  /**
   * `query` as of the end of the log, without what its writer has answered and not appended yet. It is for that writer,
   * which knows what it has answered.
   */
  readonly queryLog: Query;
  /**
   * Runs code in the worker, next to the data. The module exports `run` (see Program), which is called inside one
   * transaction. Arguments and result are cloned. Its writes are durable when the promise resolves.
   */
  readonly program: RunProgram;
  /**
   * Removes the files of the log that end at or before `position`, which an archive has. Snapshots that began before
   * may read them, so it waits for their end.
   */
  dropLog(position: number): Promise<void>;
}

/**
 * The module that applies the log to the tables. It is fixed here, so that nobody can open tables that do not follow
 * the log.
 */
const FOLLOWER = new URL('../../billing/ledger/ledger-follower.ts', import.meta.url).href;
/** The module that rebuilds the journal from the tables if the log is missing. */
const REBUILD = new URL('../../billing/audit/rebuild-log-program.ts', import.meta.url).href;

/**
 * Opens the embedded database of a data directory in a worker thread, so that no fsync blocks the event loop. A missing
 * directory is created. Only one process can open it: a second one fails with code `in_use` and a message that says
 * what to do. Tables whose log is missing are refused with `log_gone`, unless `withoutLog` begins a new log.
 */
async function openSqlite(dataDir: string, { withoutLog = false } = {}): Promise<SqliteDatabase> {
  const folder = resolve(dataDir);
  const path = join(folder, 'tollgate.db');
  const place = { path, log: join(folder, LOG_FOLDER) };
  prepareFolder(folder, path);
  const progress = shareProgress();
  const refused = ({ message, busy, logGone }: OpenRefusal) =>
    busy
      ? inUse(folder)
      : new DatabaseError(`${path} cannot be opened: ${message}`, { code: logGone ? 'log_gone' : 'unusable' });
  if (withoutLog && hasLog(place.log))
    throw new DatabaseError(`The log in ${place.log} exists, so no new log is needed`, { code: 'unusable' });
  const writer = await connect(
    {
      ...place,
      writer: {
        lock: join(folder, 'tollgate.lock'),
        migrations: loadMigrations(),
        now: Date.now(),
        follower: FOLLOWER,
        rebuild: withoutLog ? REBUILD : null,
        progress: progress.memory,
      },
    },
    refused,
  );
  const follow = async () => void (await writer.perform({ kind: 'follow' }));
  /** Performs the work when the tables can show all that was answered before. */
  const performBehindLog = (work: DatabaseWork): Promise<unknown> => {
    const appended = log.beforeReading?.() ?? null;
    return appended === null ? writer.perform(work) : appended.then(() => writer.perform(work));
  };
  const wake = () => writer.perform({ kind: 'wake' }).catch(() => {});
  const snapshots = new Set<Promise<unknown>>();
  const log = openLedgerLog(writer.log!, progress, { follow, wake });

  const inSnapshotPlace = createSnapshotPlaces();
  const read = async <T>(run: (query: Query, program: RunProgram) => Promise<T>, temporary: readonly Statement[]) => {
    await performBehindLog({ kind: 'follow' });
    // A separate connection. SQLite's readers see the state at their first read. They do not wait for the writer and do
    // not block it.
    const reader = await connect({ ...place, writer: null }, refused);
    const query: Query = (statement, params = []) =>
      reader.perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>;
    try {
      for (const statement of temporary) await query(statement);
      return await run(query, (module, args) => reader.perform({ kind: 'program', module, args }));
    } finally {
      await reader.close();
    }
  };

  return {
    log,
    engine: 'sqlite',
    queryLog: (statement, params = []) =>
      writer.perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>,
    query(statement, params = []) {
      const perform = isAboutLog(statement) ? performBehindLog : writer.perform;
      return perform({ kind: 'query', statement, params }) as Promise<readonly Row[]>;
    },
    batch(steps: readonly Step[]) {
      const perform = steps.some(({ statement }) => isAboutLog(statement)) ? performBehindLog : writer.perform;
      return perform({ kind: 'batch', steps }) as Promise<readonly (readonly Row[])[]>;
    },
    program: (module, args) => performBehindLog({ kind: 'program', module, args }),
    snapshot(party, run, temporary = []) {
      const result = inSnapshotPlace(party, () => read(run, temporary));
      const ended: Promise<unknown> = result.then(
        () => snapshots.delete(ended),
        () => snapshots.delete(ended),
      );
      snapshots.add(ended);
      return result;
    },
    async dropLog(position) {
      await Promise.all(snapshots);
      await removeBefore(place.log, position);
    },
    async close() {
      await log.close();
      await writer.close();
    },
  };
}

const ABOUT_LOG = new WeakMap<Statement, boolean>();

function isAboutLog(statement: Statement): boolean {
  let isAbout = ABOUT_LOG.get(statement);
  if (isAbout === undefined) ABOUT_LOG.set(statement, (isAbout = followsLog(statement.text)));
  return isAbout;
}

/** Creates the files, readable by their owner only, and flushes the folder so that it survives a power cut. */
function prepareFolder(folder: string, path: string): void {
  try {
    const topFolder = makeFolder(folder);
    makeFile(path);
    makeFile(join(folder, 'tollgate.lock'));
    for (const each of topFolder === undefined ? [folder] : [folder, dirname(topFolder)]) {
      const handle = openSync(each, 'r');
      fsyncSync(handle);
      closeSync(handle);
    }
  } catch (cause) {
    const reason =
      deniedTo(cause) ??
      `${cause instanceof Error ? cause.message : String(cause)}. Give another one with TOLLGATE_DATA.`;
    throw new DatabaseError(`The data directory ${folder} cannot be used: ${reason}`, { code: 'unusable', cause });
  }
}

function makeFile(path: string): void {
  const isNew = !existsSync(path);
  const descriptor = openSync(path, 'a', 0o600);
  if (isNew) giveToOwner(descriptor, dirname(path));
  closeSync(descriptor);
}

function inUse(folder: string): DatabaseError {
  return new DatabaseError(
    `The data directory ${folder} is open in another tollgate process. Use that gateway's admin API, stop it first, or give another directory with TOLLGATE_DATA.`,
    { code: 'in_use' },
  );
}

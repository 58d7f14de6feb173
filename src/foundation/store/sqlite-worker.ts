import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { type Row, type Statement, type Step, type Value, UNAVAILABLE } from './database.ts';
import { followLog, type Follower } from './log/follow.ts';
import { compressClosed } from './log/segments.ts';
import { LogGone } from './log/reader.ts';
import { followsLog, shareProgress } from './log/shared-progress.ts';
import type { LogStart } from './log/ledger-log.ts';
import { deniedTo } from './owner.ts';
import {
  APPLIED_MIGRATIONS,
  type AppliedMigration,
  MIGRATED_BY_TABLE,
  MIGRATIONS_TABLE,
  missingMigrations,
  type Migration,
} from './migrations.ts';
import { VERSION } from '../version.ts';
import type { Prepare } from './statement.ts';

export interface ConnectionSetup {
  readonly path: string;
  /** The folder of the log that the tables follow. */
  readonly log: string;
  /** null opens a reader. */
  readonly writer: WriterSetup | null;
}

interface WriterSetup {
  /** The lock file. The process that holds its lock owns the data directory. */
  readonly lock: string;
  readonly migrations: readonly Migration[];
  readonly now: number;
  /** URL of the module that follows the log, see Follower. */
  readonly follower: string;
  /**
   * URL of a Program that rebuilds the journal from the tables if the log is missing. With null, tables without their
   * log are refused.
   */
  readonly rebuild: string | null;
  /** The memory of a SharedProgress. */
  readonly progress: SharedArrayBuffer;
}

export type DatabaseWork =
  | { readonly kind: 'query'; readonly statement: Statement; readonly params: readonly Value[] }
  | { readonly kind: 'batch'; readonly steps: readonly Step[] }
  | { readonly kind: 'program'; readonly module: string; readonly args: unknown }
  /** Applies the whole log to the tables. */
  | { readonly kind: 'follow' }
  /** The log has new records: apply them in the background. */
  | { readonly kind: 'wake' }
  | { readonly kind: 'close' };

export interface WorkRequest {
  readonly id: number;
  readonly work: DatabaseWork;
}

export type WorkReply =
  | { readonly id: number; readonly ok: true; readonly value: unknown }
  | { readonly id: number; readonly ok: false; readonly message: string; readonly code: number };

/** A message to the thread. The thread has one connection at a time. After it is closed, another can be opened. */
export type Order = { readonly open: ConnectionSetup } | { readonly requests: readonly WorkRequest[] };

export interface OpenRefusal {
  readonly message: string;
  /** Another process has it open. */
  readonly busy: boolean;
  readonly logGone: boolean;
}

/** A message from the thread, in answer to `open` or `requests`. */
export type ThreadMessage =
  | { readonly isOpen: true; readonly log: LogStart | null }
  | { readonly refused: OpenRefusal }
  | { readonly replies: readonly WorkReply[] };

/**
 * Code that runs next to the data: it gets one message, returns one message, and runs inside one transaction. Integers
 * are read as bigint. `log` is the folder of the log.
 */
export interface Program {
  run(prepare: Prepare, args: unknown, log: string): unknown;
}

/** SQLite's result code for "another connection holds the lock". */
const BUSY = 5;
/** SQLite's result code for a full disk. */
const FULL = 13;
/**
 * New records are applied to the tables in steps of about so many bytes, those of 50 calls. A larger step would hold a
 * single core for longer than 2 ms, while calls wait. A smaller one costs more per record.
 */
const STEP_BYTES = 96 * 1024;
/** The longest time in milliseconds in which records gather for a step, if calls are few. */
const GATHER_MS_MAX = 5_000;
/** The time in which they gather if they come faster than such steps could follow them: then steps are larger. */
const GATHER_MS_BUSY = 250;
/** The shortest time for which a step is waited for. */
const GATHER_MS_MIN = 50;

/** Pages of the file that a connection keeps. What it lacks, it copies from the cache of the system. */
const CACHE_KIB = 8 * 1024;

/** Nice values. A thread with 5 gets about a third of the share of one with 0, if both want the same core. */
const WRITER_NICE = 5;
const READER_NICE = 10;

type Statements = Extract<DatabaseWork, { readonly kind: 'query' | 'batch' }>;

interface OpenFile {
  readonly perform: (work: DatabaseWork) => Promise<unknown>;
  /**
   * For the writer: performs several works in one transaction, because the flush is most of the cost of a small write.
   * If one work fails, it throws and none of them has an effect.
   */
  readonly together: ((works: readonly Statements[]) => readonly unknown[]) | null;
  readonly log: LogStart | null;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly follows: boolean;
}

/** Opens the file. On an error of SQLite it closes everything and rethrows. */
async function open(setup: ConnectionSetup): Promise<OpenFile> {
  const { path, writer } = setup;
  const guard = writer === null ? null : new DatabaseSync(writer.lock, { timeout: 0 });
  let database: DatabaseSync | null = null;
  try {
    // A lock of the operating system on an empty file. It is released when the process ends, also after a crash.
    guard?.exec('BEGIN EXCLUSIVE');
    database = new DatabaseSync(path, { readOnly: writer === null, timeout: 5_000, readBigInts: true });
    return await use(setup, database, guard);
  } catch (error) {
    database?.close();
    guard?.close();
    throw error;
  }
}

async function use(setup: ConnectionSetup, database: DatabaseSync, guard: DatabaseSync | null): Promise<OpenFile> {
  const { writer } = setup;
  if (writer) {
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000',
    );
    migrate(database, writer);
  } else database.exec('BEGIN');
  // A reader's temporary tables may be as large as the books, so they are stored in files.
  database.exec(`PRAGMA cache_size = -${CACHE_KIB}; PRAGMA temp_store = ${writer ? 'MEMORY' : 'FILE'}`);

  const prepared = new Map<string, Prepared>();
  const find = ({ name, text }: Statement): Prepared => {
    let entry = prepared.get(name);
    if (!entry) {
      const statement = database.prepare(text.replaceAll(/\$(?=\d)/g, '?'));
      prepared.set(name, (entry = { statement, follows: followsLog(text) }));
    }
    return entry;
  };
  const prepare: Prepare = (statement) => find(statement).statement;
  if (writer?.rebuild) {
    const { run } = (await import(writer.rebuild)) as Program;
    transaction(database, () => run(prepare, null, setup.log));
  }
  const following = writer && (await startFollowing(setup.log, writer, database, prepare));
  const query = ({ statement, params }: Step): readonly Row[] => prepare(statement).all(...(params ?? []));
  const rowsOf = (work: Statements) => (work.kind === 'query' ? query(work) : work.steps.map(query));
  const follows = ({ statement }: Step) => find(statement).follows;
  const isAboutLog = (work: Statements) => (work.kind === 'query' ? follows(work) : work.steps.some(follows));

  const together = (works: readonly Statements[]): readonly unknown[] => {
    if (works.some(isAboutLog)) following?.catchUp();
    return transaction(database, () => works.map(rowsOf));
  };
  const perform = async (work: DatabaseWork): Promise<unknown> => {
    switch (work.kind) {
      case 'query':
        if (isAboutLog(work)) following?.catchUp();
        return rowsOf(work);
      case 'batch':
        return together([work])[0];
      case 'follow':
        following!.catchUp();
        return null;
      case 'wake':
        following!.wake();
        return null;
      case 'program': {
        following?.catchUp();
        let program = programs.get(work.module);
        if (!program) programs.set(work.module, (program = (await import(work.module)) as Program));
        const { run } = program;
        const own = () => run(prepare, work.args, setup.log);
        return writer ? transaction(database, own) : own();
      }
      case 'close':
        following?.close();
        database.close();
        guard?.close();
        return null;
    }
  };
  return { perform, together: writer && together, log: following?.start ?? null };
}

/** Makes the tables follow the log, on request at once, and otherwise in the background. */
async function startFollowing(log: string, writer: WriterSetup, database: DatabaseSync, prepare: Prepare) {
  const follower = (await import(writer.follower)) as Follower;
  const progress = shareProgress(writer.progress);
  const follow = followLog({
    folder: log,
    follower,
    prepare,
    progress,
    transaction: (run) => transaction(database, run),
  });
  let timer: NodeJS.Timeout | undefined;
  const catchUp = () => {
    try {
      follow.catchUp();
      progress.state = 'fine';
    } catch (error) {
      progress.state = isPassing(error) ? 'late' : 'stopped';
      throw error;
    }
  };
  let isCompressing = false;
  let isAskedAgain = false;
  const compress = () => {
    isAskedAgain = isCompressing;
    if (isCompressing) return;
    isCompressing = true;
    // Runs in Node's thread pool. If it fails, the segment stays uncompressed and the next turn tries again.
    void compressClosed(log, progress.followed)
      .catch(() => {})
      .finally(() => {
        isCompressing = false;
        // A segment may have been closed meanwhile, and the next write may come much later.
        if (isAskedAgain) compress();
      });
  };
  /** When the first record of the next step came, and how long records gather for it. */
  let since = 0;
  let gatherMs = GATHER_MS_BUSY;
  const turn = () => {
    try {
      catchUp();
    } catch {
      // It is tried again. Until then, statements about these tables fail with the error.
    }
    compress();
    progress.sleep();
    if (progress.end > progress.followed && !progress.wake()) wake();
  };
  const poll = () => {
    timer = undefined;
    const bytes = progress.end - progress.followed;
    // A statement has made the tables follow in the meantime.
    if (bytes === 0) return turn();
    const elapsedMs = performance.now() - since;
    const stepMs = (elapsedMs * STEP_BYTES) / bytes;
    gatherMs = stepMs < GATHER_MS_MIN ? GATHER_MS_BUSY : Math.min(stepMs, GATHER_MS_MAX);
    const leftMs = gatherMs - elapsedMs;
    if (leftMs < GATHER_MS_MIN) return turn();
    // Calls may become more at any time, so a long wait is made of waits that grow.
    timer = setTimeout(poll, Math.min(leftMs, 4 * elapsedMs));
  };
  const wake = () => {
    if (timer !== undefined) return;
    since = performance.now();
    timer = setTimeout(poll, Math.min(gatherMs, GATHER_MS_BUSY));
  };
  return {
    start: follow.start,
    catchUp,
    wake,
    close() {
      clearTimeout(timer);
      try {
        catchUp();
      } catch {
        // Nothing is lost: the next start replays the log.
      }
    },
  };
}

/**
 * True for a temporary error: another connection holds a lock, or the machine lacks a resource. False for a full disk,
 * because the operator must free space.
 */
function isPassing(error: unknown): boolean {
  const code = describe(error).code & 0xff;
  return code !== 0 && code !== FULL && UNAVAILABLE.has(code);
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

function migrate(database: DatabaseSync, { migrations, now }: WriterSetup): void {
  transaction(database, () => {
    database.exec(MIGRATIONS_TABLE);
    database.exec(MIGRATED_BY_TABLE);
    const applied = database.prepare(APPLIED_MIGRATIONS).all() as unknown as readonly AppliedMigration[];
    for (const { name, text } of missingMigrations(migrations, applied)) {
      database.exec(text);
      database.prepare('INSERT INTO migrations (name, applied_at) VALUES (?, ?)').run(name, now);
      database.prepare('INSERT INTO migrated_by (name, version) VALUES (?, ?)').run(name, VERSION);
    }
  });
}

function describe(error: unknown): { message: string; code: number } {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' ? error.errcode : 0;
  return { message, code };
}

interface StatementsRequest extends WorkRequest {
  readonly work: Statements;
}

const hasStatements = (request: WorkRequest): request is StatementsRequest =>
  request.work.kind === 'query' || request.work.kind === 'batch';

async function answer(requests: readonly WorkRequest[]): Promise<readonly WorkReply[]> {
  const replies: WorkReply[] = [];
  let group: StatementsRequest[] = [];
  for (const request of requests) {
    if (hasStatements(request)) group.push(request);
    else {
      replies.push(...(await answerGroup(group)), await answerOne(request));
      group = [];
    }
  }
  replies.push(...(await answerGroup(group)));
  return replies;
}

/**
 * Performs the group in one transaction. If one request fails, each request is performed separately and gets its own
 * answer.
 */
async function answerGroup(group: readonly StatementsRequest[]): Promise<readonly WorkReply[]> {
  if (group.length > 1 && openFile.together !== null) {
    try {
      const values = openFile.together(group.map(({ work }) => work));
      return group.map(({ id }, index) => ({ id, ok: true, value: values[index] }));
    } catch {
      // The transaction was rolled back, so nothing has happened.
    }
  }
  const replies: WorkReply[] = [];
  for (const request of group) replies.push(await answerOne(request));
  return replies;
}

async function answerOne({ id, work }: WorkRequest): Promise<WorkReply> {
  try {
    return { id, ok: true, value: await openFile.perform(work) };
  } catch (error) {
    return { id, ok: false, ...describe(error) };
  }
}

/**
 * The work of this thread can wait while calls are being served. Linux has a priority for each thread; elsewhere it
 * would be that of the process. Readers of snapshots are the least urgent.
 */
function yieldTo(more: number): void {
  if (process.platform !== 'linux') return;
  try {
    // `PID/task/TID`
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, more);
  } catch {
    // It works without, only with more influence on the latency of calls.
  }
}

const say = (answer: ThreadMessage) => parentPort!.postMessage(answer);
const programs = new Map<string, Program>();
let openFile: OpenFile;
let tail = Promise.resolve();

parentPort!.on('message', (order: Order) => {
  // Messages are processed one after the other, in their order of arrival, even while a module is being imported.
  tail = tail.then(async () => {
    if ('requests' in order) return say({ replies: await answer(order.requests) });
    try {
      yieldTo(order.open.writer ? WRITER_NICE : READER_NICE);
      openFile = await open(order.open);
      say({ isOpen: true, log: openFile.log });
    } catch (error) {
      const { message, code } = describe(error);
      say({ refused: { message: deniedTo(error) ?? message, busy: code === BUSY, logGone: error instanceof LogGone } });
      // The thread ends, which closes everything that it has opened.
      parentPort!.close();
    }
  });
});

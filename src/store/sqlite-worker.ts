import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort } from 'node:worker_threads';
import type { Row, Statement, Step, Value } from './database.ts';
import { followsLog } from './follows-log.ts';
import { compressClosed } from './log/compress.ts';
import { followLog, type Follower } from './log/follow.ts';
import { LogGone } from './log/reader.ts';
import { shareProgress } from './log/shared-progress.ts';
import type { LogStart } from './log/writer.ts';
import { UNAVAILABLE } from './sqlite-codes.ts';
import {
  APPLIED_MIGRATIONS,
  type AppliedMigration,
  MIGRATED_BY_TABLE,
  MIGRATIONS_TABLE,
  missingMigrations,
  type Migration,
} from './migrations.ts';
import { VERSION } from '../version.ts';

/** One connection. */
export interface ConnectionSetup {
  readonly path: string;
  /** Folder of the log that the tables follow. */
  readonly log: string;
  /** null opens a reader. */
  readonly writer: WriterSetup | null;
}

interface WriterSetup {
  /** The file whose lock says that this process owns the data directory. */
  readonly lock: string;
  readonly migrations: readonly Migration[];
  readonly now: number;
  /** URL of the module that follows the log, see Follower. */
  readonly follower: string;
  /** URL of a Program that makes the tables' own journal where the log is gone; null refuses to open them then. */
  readonly rebuild: string | null;
  /** Memory of a SharedProgress. */
  readonly progress: SharedArrayBuffer;
}

export type Work =
  | { readonly kind: 'query'; readonly statement: Statement; readonly params: readonly Value[] }
  | { readonly kind: 'batch'; readonly steps: readonly Step[] }
  | { readonly kind: 'program'; readonly module: string; readonly args: unknown }
  /** Brings the tables up to the log. */
  | { readonly kind: 'follow' }
  /** The log goes on: the tables follow in the background. */
  | { readonly kind: 'wake' }
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

/** Why the file cannot be opened. */
export interface Refusal {
  readonly message: string;
  /** Another process has it open. */
  readonly busy: boolean;
  /** The log of its tables is gone. */
  readonly logGone: boolean;
}

/** From the thread: to `open`, and to `requests`. */
export type Answer =
  | { readonly opened: true; readonly log: LogStart | null }
  | { readonly refused: Refusal }
  | { readonly replies: readonly Reply[] };

export type Prepare = (statement: Statement) => StatementSync;

/**
 * Code that runs beside the data: one message in, one message out, all of it inside one transaction. Integers are
 * read as bigint. `log` is the folder of the log.
 */
export interface Program {
  run(prepare: Prepare, args: unknown, log: string): unknown;
}

/** SQLite's result code for "another connection holds the lock". */
const BUSY = 5;
/** SQLite's result code for a full disk. */
const FULL = 13;
/** Records gather this many milliseconds before the tables follow: a large transaction costs less for each of them. */
const GATHER_MS = 250;

type Statements = Extract<Work, { readonly kind: 'query' | 'batch' }>;

/** An open file: what performs work, and of the writer where the log is gone on with. */
interface Opened {
  readonly perform: (work: Work) => Promise<unknown>;
  /**
   * Of the writer: performs works in one transaction, as the flush is most of what a small write costs. Throws where
   * one of them fails: then none of them has happened.
   */
  readonly together: ((works: readonly Statements[]) => readonly unknown[]) | null;
  readonly log: LogStart | null;
}

interface Prepared {
  readonly statement: StatementSync;
  readonly follows: boolean;
}

/** Opens the file. Throws what SQLite throws, with nothing left open. */
async function open(setup: ConnectionSetup): Promise<Opened> {
  const { path, writer } = setup;
  const guard = writer === null ? null : new DatabaseSync(writer.lock, { timeout: 0 });
  let database: DatabaseSync | null = null;
  try {
    // The lock is the operating system's, taken on an empty file: it falls with the process, however the process ends.
    guard?.exec('BEGIN EXCLUSIVE');
    database = new DatabaseSync(path, { readOnly: writer === null, timeout: 5_000, readBigInts: true });
    return await use(setup, database, guard);
  } catch (error) {
    database?.close();
    guard?.close();
    throw error;
  }
}

/** Prepares an open file for its work. */
async function use(setup: ConnectionSetup, database: DatabaseSync, guard: DatabaseSync | null): Promise<Opened> {
  const { writer } = setup;
  if (writer) {
    database.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 4000',
    );
    migrate(database, writer);
  } else database.exec('BEGIN');
  // Temporary tables of a reader may be as large as the books: they go to files.
  database.exec(`PRAGMA cache_size = -65536; PRAGMA temp_store = ${writer ? 'MEMORY' : 'FILE'}`);

  const prepared = new Map<string, Prepared>();
  const find = ({ name, text }: Statement): Prepared => {
    let found = prepared.get(name);
    if (!found) {
      const statement = database.prepare(text.replaceAll(/\$(?=\d)/g, '?'));
      prepared.set(name, (found = { statement, follows: followsLog(text) }));
    }
    return found;
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
  const perform = async (work: Work): Promise<unknown> => {
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

/** The tables follow the log: at once where that is asked for, and in the background. */
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
    // In the pool of threads. What fails is tried again at the next turn; until then the segment is plain.
    void compressClosed(log, progress.followed)
      .catch(() => {})
      .finally(() => {
        isCompressing = false;
        // A segment may have been closed meanwhile, and nothing more be written for long.
        if (isAskedAgain) compress();
      });
  };
  const turn = () => {
    timer = undefined;
    try {
      catchUp();
    } catch {
      // It is tried again; whoever asks for these tables meanwhile is told.
    }
    compress();
    progress.sleep();
    if (progress.end > progress.followed && !progress.wake()) wake();
  };
  const wake = () => {
    timer ??= setTimeout(turn, GATHER_MS);
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
        // The log has it: the next start replays it.
      }
    },
  };
}

/** Another connection is in the way, or the machine is short of something. A full disk needs somebody's help. */
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

interface StatementsRequest extends Request {
  readonly work: Statements;
}

const hasStatements = (request: Request): request is StatementsRequest =>
  request.work.kind === 'query' || request.work.kind === 'batch';

async function answer(requests: readonly Request[]): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
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

/** If one fails, each is performed by itself and gets its own answer. */
async function answerGroup(group: readonly StatementsRequest[]): Promise<readonly Reply[]> {
  if (group.length > 1 && opened.together !== null) {
    try {
      const values = opened.together(group.map(({ work }) => work));
      return group.map(({ id }, index) => ({ id, ok: true, value: values[index] }));
    } catch {
      // Nothing of it has happened.
    }
  }
  const replies: Reply[] = [];
  for (const request of group) replies.push(await answerOne(request));
  return replies;
}

async function answerOne({ id, work }: Request): Promise<Reply> {
  try {
    return { id, ok: true, value: await opened.perform(work) };
  } catch (error) {
    return { id, ok: false, ...describe(error) };
  }
}

const say = (answer: Answer) => parentPort!.postMessage(answer);
const programs = new Map<string, Program>();
let opened: Opened;
let tail = Promise.resolve();

parentPort!.on('message', (order: Order) => {
  // One after the other, in the order of arrival, also while a module is being imported.
  tail = tail.then(async () => {
    if ('requests' in order) return say({ replies: await answer(order.requests) });
    try {
      opened = await open(order.open);
      say({ opened: true, log: opened.log });
    } catch (error) {
      const { message, code } = describe(error);
      say({ refused: { message, busy: code === BUSY, logGone: error instanceof LogGone } });
      // The thread ends, and with it whatever it has opened.
      parentPort!.close();
    }
  });
});

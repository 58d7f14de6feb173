import { Worker } from 'node:worker_threads';
import { DatabaseError } from './database.ts';
import type { Answer, ConnectionSetup, Reply, Request, Work } from './sqlite-worker.ts';

/** One connection to an SQLite file, in a thread. */
export interface Connection {
  perform(work: Work): Promise<unknown>;
  close(): Promise<void>;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Gets what the thread says, or why it ended. */
  hear: (said: Answer | DatabaseError) => void;
  expiry: NodeJS.Timeout | null;
}

/**
 * Threads whose connection was closed. The next connection takes one: to start a thread takes 30 to 50 ms of a
 * processor, and every snapshot has a connection of its own.
 */
const idle: Thread[] = [];
const MOST_IDLE = 3;
const IDLE_MS = 10_000;

/** Rejects with DatabaseError: `refused` makes it of the reason why the file cannot be opened. */
export async function connect(
  setup: ConnectionSetup,
  refused: (reason: { readonly message: string; readonly busy: boolean }) => DatabaseError,
): Promise<Connection> {
  const thread = takeThread();
  await new Promise<void>((resolve, reject) => {
    thread.hear = (said) => {
      if (said instanceof DatabaseError) reject(said);
      else if ('refused' in said) reject(refused(said.refused));
      else resolve();
    };
    thread.worker.postMessage({ open: setup });
  });

  const waiting = new Map<number, Waiting>();
  let outbox: Request[] = [];
  let lastId = 0;
  let ended: DatabaseError | null = null;
  thread.hear = (said) => {
    if (said instanceof DatabaseError) {
      ended ??= said;
      for (const { reject } of waiting.values()) reject(ended);
      waiting.clear();
    } else if ('replies' in said) for (const reply of said.replies) settle(reply);
  };
  const settle = (reply: Reply) => {
    const waiter = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (reply.ok) waiter?.resolve(reply.value);
    else waiter?.reject(toDatabaseError(reply.message, reply.code));
  };
  const flush = () => {
    thread.worker.postMessage({ requests: outbox });
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
      ended = closedError();
      await closed;
      await giveBack(thread);
    },
  };
}

function takeThread(): Thread {
  const kept = idle.pop();
  if (kept === undefined) return startThread();
  clearTimeout(kept.expiry!);
  kept.expiry = null;
  kept.worker.ref();
  return kept;
}

function startThread(): Thread {
  // Without the flags of this process: a worker refuses some of them (--input-type).
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { execArgv: [] });
  const thread: Thread = { worker, hear: () => {}, expiry: null };
  const end = (reason: DatabaseError) => {
    forget(thread);
    thread.hear(reason);
  };
  worker.on('message', (said: Answer) => thread.hear(said));
  worker.on('error', (cause) =>
    end(
      new DatabaseError(`The database worker failed: ${String(cause)}`, { code: 'worker', unavailable: true, cause }),
    ),
  );
  worker.on('exit', () => end(closedError()));
  return thread;
}

async function giveBack(thread: Thread): Promise<void> {
  thread.hear = () => {};
  if (idle.length >= MOST_IDLE) {
    await thread.worker.terminate();
    return;
  }
  idle.push(thread);
  // A process that has nothing else to do ends.
  thread.worker.unref();
  thread.expiry = setTimeout(() => {
    forget(thread);
    void thread.worker.terminate();
  }, IDLE_MS).unref();
}

function forget(thread: Thread): void {
  const at = idle.indexOf(thread);
  if (at !== -1) idle.splice(at, 1);
}

const closedError = () => new DatabaseError('The database is closed', { code: 'closed', unavailable: true });

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

import { Worker } from 'node:worker_threads';
import { DatabaseError, toDatabaseError } from './database.ts';
import type { LogStart } from './log/ledger-log.ts';
import type {
  ThreadMessage,
  ConnectionSetup,
  OpenRefusal,
  WorkReply,
  WorkRequest,
  DatabaseWork,
} from './sqlite-worker.ts';

interface SqliteConnection {
  /** For the writer: the end of the log, from which to continue. */
  readonly log: LogStart | null;
  perform(work: DatabaseWork): Promise<unknown>;
  close(): Promise<void>;
}

interface PendingWork {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Receives the thread's messages, and the reason when it ends. */
  hear: (message: ThreadMessage | DatabaseError) => void;
  expiry: NodeJS.Timeout | null;
}

/**
 * Idle threads whose connection was closed. The next connection reuses one, because every snapshot needs its own
 * connection. A new thread costs 30 to 50 ms of processor time, on a busy machine up to 200; an idle one costs 3 ms.
 * The figures of a quiet gateway take a snapshot after each call, so one idle thread is kept for a long time. It uses 7
 * to 8 MB of memory and no processor time.
 */
const idle: Thread[] = [];
const MOST_IDLE = 3;
const IDLE_MS = 10_000;
const LAST_IDLE_MS = 600_000;

/**
 * MiB for new objects: three times the half-space of V8. What a step of the thread makes, about 6 MiB at full load, is
 * garbage after it. The default of 96 would be filled before it is collected.
 */
const YOUNG_MIB = 12;

/** If a message had more requests than this, the load is taken to be high. */
const FEW = 2;

/** Opens a connection. Rejects with DatabaseError. `refused` makes the error if the file cannot be opened. */
export async function connect(
  setup: ConnectionSetup,
  refused: (reason: OpenRefusal) => DatabaseError,
): Promise<SqliteConnection> {
  const thread = takeThread();
  const log = await new Promise<LogStart | null>((resolve, reject) => {
    thread.hear = (message) => {
      if (message instanceof DatabaseError) reject(message);
      else if ('refused' in message) reject(refused(message.refused));
      else if ('isOpen' in message) resolve(message.log);
    };
    thread.worker.postMessage({ open: setup });
  });

  const waiting = new Slots<PendingWork>();
  let outbox: WorkRequest[] = [];
  /** Number of requests in the message that the thread has not answered yet. */
  let under = 0;
  let ended: DatabaseError | null = null;
  thread.hear = (message) => {
    if (message instanceof DatabaseError) {
      ended ??= message;
      for (const { reject } of waiting.takeAll()) reject(ended);
    } else if ('replies' in message) {
      for (const reply of message.replies) settle(reply);
      // Under high load, the next message also takes the requests that these answers cause.
      if (under > FEW || outbox.length > 0) setImmediate(flush);
      else under = 0;
    }
  };
  const settle = (reply: WorkReply) => {
    const waiter = waiting.take(reply.id);
    if (reply.ok) waiter?.resolve(reply.value);
    else waiter?.reject(toDatabaseError(reply.message, reply.code));
  };
  const flush = () => {
    under = outbox.length;
    if (under === 0) return;
    thread.worker.postMessage({ requests: outbox });
    outbox = [];
  };
  const perform = (work: DatabaseWork) =>
    new Promise<unknown>((resolve, reject) => {
      if (ended) return reject(ended);
      const id = waiting.add({ resolve, reject });
      // Requests that arrive while the thread is busy are sent in one message and share a commit.
      if (outbox.push({ id, work }) === 1 && under === 0) queueMicrotask(flush);
    });
  return {
    log,
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
  const idleThread = idle.pop();
  if (idleThread === undefined) return startThread();
  clearTimeout(idleThread.expiry!);
  idleThread.expiry = null;
  idleThread.worker.ref();
  return idleThread;
}

function startThread(): Thread {
  // The worker does not inherit the flags of this process, because workers refuse some of them (--input-type).
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), {
    execArgv: [],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB },
  });
  const thread: Thread = { worker, hear: () => {}, expiry: null };
  const end = (reason: DatabaseError) => {
    forget(thread);
    thread.hear(reason);
  };
  worker.on('message', (message: ThreadMessage) => thread.hear(message));
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
  const stays = idle.push(thread) === 1 ? LAST_IDLE_MS : IDLE_MS;
  // An idle thread must not keep the process running.
  thread.worker.unref();
  thread.expiry = setTimeout(() => {
    forget(thread);
    void thread.worker.terminate();
  }, stays).unref();
}

function forget(thread: Thread): void {
  const at = idle.indexOf(thread);
  if (at !== -1) idle.splice(at, 1);
}

const closedError = () => new DatabaseError('The database is closed', { code: 'closed', unavailable: true });

/**
 * Items that come and go with each call, such as those that wait for an answer. Each has a number, which is free again
 * after it. An array, not a Map or a Set: each time one of these grows, its old table stays in the old heap and keeps
 * the calls of that moment alive until the next full collection (decision 91).
 */
class Slots<T extends object> {
  readonly #items: (T | null)[] = [];
  readonly #free: number[] = [];

  /** Returns the number of the item. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length;
    this.#items[slot] = item;
    return slot;
  }

  /** Takes the item with this number out; null without one. */
  take(slot: number): T | null {
    const item = this.#items[slot] ?? null;
    if (item === null) return null;
    this.#items[slot] = null;
    this.#free.push(slot);
    return item;
  }

  /** Takes all items out. */
  takeAll(): readonly T[] {
    return this.#items.flatMap((_item, slot) => this.take(slot) ?? []);
  }
}

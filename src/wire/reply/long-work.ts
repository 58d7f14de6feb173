import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { ReadingAnswer, ReadingJob } from './reading-worker.ts';

/* Work that would block all calls if it ran in one piece: here in turns of the event loop, or in a separate thread. */

/**
 * A larger text is read in a separate turn of the event loop. Reading a text of this size takes about a millisecond.
 */
export const OWN_TURN_BYTES = 64 * 1024;

let last: Promise<unknown> = Promise.resolve();

/**
 * Resolves when the caller may do a piece of work of a few milliseconds. The whole process does one piece per turn of
 * the event loop. After a long piece there is a pause of the same length, so that other calls can continue. Do the work
 * before the next await.
 */
export function ownTurn(): Promise<void> {
  const before = last;
  const turn = Promise.withResolvers<void>();
  last = (async () => {
    await before;
    await nextTurn();
    const began = performance.now();
    turn.resolve();
    await nextTurn();
    const took = performance.now() - began;
    if (took > NOTICED_MS) await pause(took);
  })();
  return turn.promise;
}

const NOTICED_MS = 4;

interface Waiting extends ReadingJob {
  readonly transfer: ArrayBuffer[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** If a job needs more heap, only that job fails: the worker ends, and the next job starts a new worker. */
const WORKER_HEAP_MIB = 512;

/**
 * Queued jobs by account. Accounts take turns, so that an account with many large replies delays another account by at
 * most one job.
 */
const waiting = new Map<string, Waiting[]>();
let worker: Worker | null = null;
let running: Waiting | null = null;

/**
 * Runs a ReadingModule in a separate thread, so that slow parsing does not block other calls. The first job starts the
 * thread, which runs one job at a time. `transfer` lists the buffers of `args` that are moved to the thread. Rejects
 * with Error if the job throws or runs out of memory.
 */
export function readElsewhere(account: string, module: URL, args: unknown, transfer: ArrayBuffer[]): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const job: Waiting = { module: module.href, args, transfer, resolve, reject };
    const own = waiting.get(account);
    if (own) own.push(job);
    else waiting.set(account, [job]);
    next();
  });
}

function next(): void {
  if (running !== null) return;
  const first = waiting.entries().next();
  if (first.done) return;
  const [account, jobs] = first.value;
  // An account with more jobs goes to the end of the queue.
  waiting.delete(account);
  running = jobs.shift()!;
  if (jobs.length > 0) waiting.set(account, jobs);
  worker ??= start();
  const { module, args, transfer } = running;
  worker.postMessage({ module, args } satisfies ReadingJob, transfer);
}

function start(): Worker {
  // The worker does not inherit the flags of this process, because workers refuse some of them (--input-type).
  const started = new Worker(new URL('./reading-worker.ts', import.meta.url), {
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MIB },
  });
  started.on('message', (answer: ReadingAnswer) =>
    ended((job) => (answer.ok ? job.resolve(answer.value) : job.reject(new Error(answer.message)))),
  );
  const failed = (error: Error) => {
    if (worker !== started) return;
    worker = null;
    ended((job) => job.reject(error));
  };
  started.on('error', failed);
  started.on('exit', () => failed(new Error('the thread that reads large replies has ended')));
  // The thread must not keep the process running. `unref` comes last, because adding listeners refs the worker again.
  started.unref();
  return started;
}

function ended(tell: (job: Waiting) => void): void {
  const job = running;
  running = null;
  if (job !== null) tell(job);
  next();
}

import { Worker } from 'node:worker_threads';
import type { ReadingAnswer, ReadingJob } from './reading-worker.ts';

interface Waiting extends ReadingJob {
  readonly transfer: ArrayBuffer[];
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A job that needs more of it fails alone: the worker ends, and the next job starts another. */
const WORKER_HEAP_MIB = 512;

/** Jobs by account. Accounts take turns, so that one with many large replies holds another's up by one job at most. */
const waiting = new Map<string, Waiting[]>();
let worker: Worker | null = null;
let running: Waiting | null = null;

/**
 * Runs a ReadingModule in a thread of its own, so that what takes long to read stops nobody's calls. The thread is
 * started by the first job and does one at a time. `transfer`: buffers of `args` that are given away. Rejects with
 * Error where the job throws or runs out of memory.
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
  // To the end of the line, where it has more.
  waiting.delete(account);
  running = jobs.shift()!;
  if (jobs.length > 0) waiting.set(account, jobs);
  worker ??= start();
  const { module, args, transfer } = running;
  worker.postMessage({ module, args } satisfies ReadingJob, transfer);
}

function start(): Worker {
  // Without the flags of this process: a worker refuses some of them (--input-type).
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
  // Nobody waits for it when the process is done. Listeners hold a process, so this comes after them.
  started.unref();
  return started;
}

function ended(tell: (job: Waiting) => void): void {
  const job = running;
  running = null;
  if (job !== null) tell(job);
  next();
}

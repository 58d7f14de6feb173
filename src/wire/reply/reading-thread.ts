import { Worker } from 'node:worker_threads';
import type { ReadingAnswer, ReadingJob } from './reading-worker.ts';

interface Waiting {
  readonly module: string;
  readonly args: unknown;
  readonly transfer: ArrayBuffer[];
  readonly deadlineMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** If a job needs more heap, only that job fails: the worker ends, and the next job starts a new worker. */
const WORKER_HEAP_MIB = 512;

/**
 * A separate thread for what would block other calls if it was read in this one. The first job starts the thread,
 * which runs one job at a time.
 */
export class ReadingThread {
  /**
   * Queued jobs by account. Accounts take turns, so that an account with many large jobs delays another account by at
   * most one job.
   */
  readonly #waiting = new Map<string, Waiting[]>();
  #worker: Worker | null = null;
  #running: Waiting | null = null;
  #timer: NodeJS.Timeout | undefined;

  /**
   * Runs a ReadingModule in the thread. `transfer` lists the buffers of `args` that are moved to the thread. A job that
   * runs for longer than `deadlineMs` is ended with its thread; default: it may take any time. Rejects with Error if
   * the job throws, runs out of memory or takes too long.
   */
  read(
    account: string,
    module: URL,
    args: unknown,
    transfer: ArrayBuffer[],
    deadlineMs: number = Infinity,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const job: Waiting = { module: module.href, args, transfer, deadlineMs, resolve, reject };
      const own = this.#waiting.get(account);
      if (own) own.push(job);
      else this.#waiting.set(account, [job]);
      this.#next();
    });
  }

  #next(): void {
    if (this.#running !== null) return;
    const first = this.#waiting.entries().next();
    if (first.done) return;
    const [account, jobs] = first.value;
    // An account with more jobs goes to the end of the queue.
    this.#waiting.delete(account);
    this.#running = jobs.shift()!;
    if (jobs.length > 0) this.#waiting.set(account, jobs);
    const worker = (this.#worker ??= this.#start());
    const { module, args, transfer, deadlineMs } = this.#running;
    worker.postMessage({ module, args } satisfies ReadingJob, transfer);
    if (deadlineMs !== Infinity) this.#timer = setTimeout(() => this.#tooLong(worker), deadlineMs).unref();
  }

  #tooLong(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    void worker.terminate();
    this.#ended((job) => job.reject(new Error(`it took longer than ${job.deadlineMs} ms`)));
  }

  #start(): Worker {
    // The worker does not inherit the flags of this process, because workers refuse some of them (--input-type).
    const started = new Worker(new URL('./reading-worker.ts', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MIB },
    });
    started.on('message', (answer: ReadingAnswer) => {
      if (this.#worker === started)
        this.#ended((job) => (answer.ok ? job.resolve(answer.value) : job.reject(new Error(answer.message))));
    });
    const failed = (error: Error) => {
      if (this.#worker !== started) return;
      this.#worker = null;
      this.#ended((job) => job.reject(error));
    };
    started.on('error', failed);
    started.on('exit', () => failed(new Error('the thread that reads has ended')));
    // The thread must not keep the process running. `unref` comes last, because adding listeners refs the worker again.
    started.unref();
    return started;
  }

  #ended(tell: (job: Waiting) => void): void {
    clearTimeout(this.#timer);
    const job = this.#running;
    this.#running = null;
    if (job !== null) tell(job);
    this.#next();
  }
}

const replies = new ReadingThread();

/** Runs a ReadingModule for a large reply, in the thread that all of them share. See `ReadingThread.read`. */
export const readElsewhere: ReadingThread['read'] = (...job) => replies.read(...job);

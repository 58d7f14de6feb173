import { Worker } from 'node:worker_threads';
import type { ReadingAnswer, ReadingJob } from './reading-worker.ts';

interface QueuedReading {
  /** Made when the job begins. `transfer` lists the buffers that are moved to the thread. */
  readonly message: () => { readonly job: ReadingJob; readonly transfer: ArrayBuffer[] };
  readonly cpuMs: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** If a job needs more heap, only that job fails: the worker ends, and the next job starts a new worker. */
const WORKER_HEAP_MIB = 512;
/** How often it is looked at how much of a processor a job has taken. */
const LOOK_MS = 100;
/** Milliseconds of a processor for the start of the thread and of the module. */
const START_CPU_MS = 1_000;

/**
 * A separate thread for what would block other calls if it was read in this one. The first job starts the thread,
 * which runs one job at a time.
 */
export class ReadingThread {
  /**
   * Queued jobs by account. Accounts take turns, so that an account with many large jobs delays another account by at
   * most one job.
   */
  readonly #waiting = new Map<string, QueuedReading[]>();
  #worker: Worker | null = null;
  #running: QueuedReading | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #heapMib: number;

  constructor(heapMib: number = WORKER_HEAP_MIB) {
    this.#heapMib = heapMib;
  }

  /**
   * Runs a ReadingModule in the thread. `transfer` lists the buffers of `args` that are moved to the thread. Rejects
   * with Error if the job throws or runs out of memory.
   */
  read(account: string, module: URL, args: unknown, transfer: ArrayBuffer[]): Promise<unknown> {
    return this.#queue(account, () => ({ job: { module: module.href, args }, transfer }), Infinity);
  }

  /**
   * Runs a ReadingModule that gets a copy of a file, `{ bytes: ArrayBuffer }`. The copy is made when the job begins, so
   * files that wait are in memory once. A job that takes more than `cpuMs` of a processor is ended with its thread: on
   * a busy machine it may take longer. Rejects like `read`, and with Error if the job takes too much.
   */
  readFile(account: string, module: URL, file: Uint8Array, cpuMs: number): Promise<unknown> {
    const message = () => {
      const bytes = new Uint8Array(file).buffer;
      return { job: { module: module.href, args: { bytes } }, transfer: [bytes] };
    };
    return this.#queue(account, message, cpuMs);
  }

  #queue(account: string, message: QueuedReading['message'], cpuMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const job: QueuedReading = { message, cpuMs, resolve, reject };
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
    const isNew = this.#worker === null;
    const worker = (this.#worker ??= this.#start());
    if (this.#running.cpuMs !== Infinity) this.#watch(worker, this.#running, isNew);
    const { job, transfer } = this.#running.message();
    worker.postMessage(job, transfer);
  }

  /** Ends a job that takes too much of a processor. */
  #watch(worker: Worker, job: QueuedReading, isNew: boolean): void {
    const usedMs = async () => {
      const { user, system } = await worker.cpuUsage();
      return (user + system) / 1_000;
    };
    const before = isNew ? Promise.resolve(START_CPU_MS) : usedMs();
    const sample = async () => {
      // The thread may be about to start, or to end, which `failed` sees.
      const used = await Promise.all([usedMs(), before]).then(
        ([now, then]) => now - then,
        () => 0,
      );
      if (this.#running !== job) return;
      if (used > job.cpuMs) this.#tooLong(worker);
      else this.#timer = setTimeout(sample, LOOK_MS).unref();
    };
    this.#timer = setTimeout(sample, LOOK_MS).unref();
  }

  #tooLong(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    void worker.terminate();
    this.#ended((job) => job.reject(new Error(`it took more than ${job.cpuMs} ms of a processor`)));
  }

  #start(): Worker {
    // The worker does not inherit the flags of this process, because workers refuse some of them (--input-type).
    const started = new Worker(new URL('./reading-worker.ts', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib },
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

  #ended(tell: (job: QueuedReading) => void): void {
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

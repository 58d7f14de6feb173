import type { RunningResponses } from '#kept-responses';
import type { CuttableCancelSource } from '#billing/amounts';
import type { Stopped } from './background-end.ts';

/** How often it is checked whether responses were cancelled or deleted at another gateway. */
const POLL_MS = 1_000;
/** The gateway says this often that it is there: much more often than it has to. */
const RENEW_MS = 10_000;
/** Longest wait for the ends of responses when the gateway stops. */
const CLOSE_MS = 5_000;

interface RunOptions {
  /** Ends the call. */
  readonly gone: CuttableCancelSource;
  /** Shows clients that it is cancelled, although its call goes on until it is settled. Does not reject. */
  readonly showCancelled: () => Promise<void>;
  readonly onDeleted: () => void;
}

export class BackgroundRun {
  readonly id: string;
  /** Resolves when its end is stored. */
  readonly ended: Promise<void>;
  /** The first reason. */
  stopped: Stopped | null = null;
  isDeleted = false;
  /** Resolves when clients are shown that it is cancelled; null if it is not. */
  progressShown: Promise<void> | null = null;
  /** Its call has ended, so nothing stops it any more. */
  isEnding = false;
  readonly #options: RunOptions;
  #end!: () => void;
  #waiting: (() => void)[] = [];

  constructor(id: string, options: RunOptions) {
    this.id = id;
    this.#options = options;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  stop(why: Stopped): void {
    const { gone, showCancelled, onDeleted } = this.#options;
    if (why === 'deleted' && !this.isDeleted) {
      this.isDeleted = true;
      onDeleted();
      this.tellChanged();
    }
    if (this.isEnding) return;
    if (this.stopped === null && why === 'cancelled')
      this.progressShown = showCancelled().finally(() => this.tellChanged());
    this.stopped ??= why;
    // A call that is cut first has been left by nobody, see CancelSignal.byGateway.
    if (why === 'shutdown') gone.cut.abort();
    // Whoever leaves pays for what is made until the upstream is left, in the background as elsewhere.
    gone.abort();
  }

  /** Resolves when more of it is stored. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  tellChanged(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  over(): void {
    this.#end();
    this.tellChanged();
  }
}

export class Runs {
  readonly #runs = new Map<string, BackgroundRun>();
  readonly #running: RunningResponses;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;
  #renewedAt = performance.now();
  isClosed = false;

  constructor(running: RunningResponses, onError: (error: unknown) => void) {
    this.#running = running;
    this.#onError = onError;
  }

  get(id: string): BackgroundRun | undefined {
    return this.#runs.get(id);
  }

  begin(id: string, options: RunOptions): BackgroundRun {
    const run = new BackgroundRun(id, options);
    this.#runs.set(id, run);
    this.#timer ??= setInterval(() => void this.#checkRuns(), POLL_MS).unref();
    if (this.isClosed) run.stop('shutdown');
    return run;
  }

  end(run: BackgroundRun): void {
    this.#runs.delete(run.id);
    run.over();
    if (this.#runs.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  stop(): void {
    for (const run of this.#runs.values()) run.stop('shutdown');
  }

  /** Stops all responses and takes no more. Resolves when their ends are stored, or after CLOSE_MS. */
  async close(): Promise<void> {
    this.isClosed = true;
    const runs = [...this.#runs.values()];
    this.stop();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)));
    await Promise.race([Promise.all(runs.map(({ ended }) => ended)), late]);
    clearTimeout(timer);
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  async #checkRuns(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const runs = [...this.#runs.values()];
      const ids = runs.map(({ id }) => id);
      const states = await this.#running.statesOf(ids);
      for (const run of runs) {
        const state = states.get(run.id);
        if (state === undefined || state === 'deleting') run.stop('deleted');
        if (state === 'cancelling') run.stop('cancelled');
      }
      if (performance.now() - this.#renewedAt >= RENEW_MS) {
        await this.#running.renew(ids);
        this.#renewedAt = performance.now();
      }
    } catch (error) {
      this.#onError(error);
    }
    this.#isLooking = false;
  }
}

interface DueWorkerOptions {
  /**
   * Claims due rows and starts their work. Resolves with true if more rows are due; then the next turn follows at once.
   */
  readonly turn: (worker: DueWorker) => Promise<boolean | void>;
  /** Milliseconds from the end of a turn to the next. null: only `wake` and `run` start turns. */
  readonly pauseMs: number | null;
  /**
   * Called when a turn or a job failed. `failures` counts the failures since the last successful turn. Not called after
   * `close`. The worker continues.
   */
  readonly onError: (error: unknown, failures: number) => void;
}

/** Processes due rows. Turns claim the rows, one turn at a time, and jobs run concurrently. */
export interface DueWorker {
  /** Aborts at `close`. */
  readonly closed: AbortSignal;
  readonly jobs: number;
  /** Takes a turn now, or right after the current turn. */
  wake(): void;
  /** Takes a turn, and resolves when no turn and no job is running. */
  run(): Promise<void>;
  /** Runs a job. `ended` is called after the job is no longer counted in `jobs`. */
  start(job: () => Promise<void>, ended?: () => void): void;
  /** Takes no further turn, and resolves when no turn and no job is running. */
  close(): Promise<void>;
}

/**
 * A worker for rows that become due. The first turn comes after `pauseMs`, unless `wake` or `run` is called earlier.
 */
export function createDueWorker({ turn, pauseMs, onError }: DueWorkerOptions): DueWorker {
  const closing = new AbortController();
  const { signal: closed } = closing;
  const jobs = new Set<Promise<void>>();
  let turns = Promise.resolve();
  let isTurning = false;
  let isAsked = false;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;

  const failed = (error: unknown) => {
    failures += 1;
    if (!closed.aborted) onError(error, failures);
  };

  const takeTurns = async () => {
    clearTimeout(timer);
    while (isAsked && !closed.aborted) {
      isAsked = false;
      try {
        if (await turn(worker)) isAsked = true;
        failures = 0;
      } catch (error) {
        failed(error);
      }
    }
    // No await between the check of `isAsked` and this line, so no call of `wake` is lost.
    isTurning = false;
    sleep();
  };

  const sleep = () => {
    if (pauseMs !== null && !closed.aborted) timer = setTimeout(wake, pauseMs).unref();
  };

  const wake = () => {
    isAsked = true;
    if (isTurning) return;
    isTurning = true;
    turns = takeTurns();
  };

  const idle = async () => {
    while (jobs.size > 0 || isTurning) await Promise.all([turns, ...jobs]);
  };

  const worker: DueWorker = {
    closed,
    get jobs() {
      return jobs.size;
    },
    wake,
    run() {
      wake();
      return idle();
    },
    start(job, ended) {
      const running = job()
        .catch(failed)
        .finally(() => {
          jobs.delete(running);
          ended?.();
        });
      jobs.add(running);
    },
    close() {
      clearTimeout(timer);
      closing.abort(new Error('the gateway stops'));
      return idle();
    },
  };
  sleep();
  return worker;
}

interface DueWorkerOptions {
  /** Claims what is due and starts it. Resolves with true where more is due: the next turn follows at once. */
  readonly turn: (worker: DueWorker) => Promise<boolean | void>;
  /** Milliseconds from the end of a turn to the next. null: turns come by `wake` and `run` alone. */
  readonly pauseMs: number | null;
  /**
   * A turn or a job failed, for the `failures`-th time since a turn went well. Not called after `close`. The worker
   * goes on.
   */
  readonly onError: (error: unknown, failures: number) => void;
}

/** Does what falls due: turns that claim it, one after the other, and jobs that run beside them. */
export interface DueWorker {
  /** Aborts at `close`. */
  readonly closed: AbortSignal;
  /** Jobs that run now. */
  readonly jobs: number;
  /** Takes a turn now, or right after the turn that runs. */
  wake(): void;
  /** Takes a turn, and resolves when neither turn nor job runs. */
  run(): Promise<void>;
  /** Runs a job. `ended` is called after it, when it is not counted in `jobs` any more. */
  start(job: () => Promise<void>, ended?: () => void): void;
  /** Takes no further turn, and resolves when neither turn nor job runs. */
  close(): Promise<void>;
}

/** A worker for rows that fall due. The first turn comes after `pauseMs`, unless it is woken. */
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
    // In the same step as the question above: nobody can ask in between and not be heard.
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

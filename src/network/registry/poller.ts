export interface PollerOptions {
  /** Never rejects. */
  readonly poll: () => Promise<void>;
  readonly pollMs: number;
  /** Whether another poll follows one that has ended. */
  readonly goesOn: () => boolean;
}

/** Polls the database at intervals, one poll at a time. */
export interface Poller {
  /** Polls after the interval, where no poll runs or is scheduled. */
  schedule(): void;
  /** Settles after a poll that began after this call, or with `stop`. */
  catchUp(): Promise<void>;
  /** The poll that runs; null where none does. */
  running(): Promise<void> | null;
  stop(): void;
}

export function createPoller({ poll, pollMs, goesOn }: PollerOptions): Poller {
  let timer: NodeJS.Timeout | null = null;
  let polling: Promise<void> | null = null;
  let catching: Promise<void> | null = null;
  let stopped = false;

  async function run(): Promise<void> {
    await poll();
    polling = null;
    if (goesOn()) schedule();
  }

  function clear(): void {
    if (timer) clearTimeout(timer);
    timer = null;
  }

  function schedule(): void {
    if (stopped || timer !== null || polling !== null) return;
    timer = setTimeout(() => {
      timer = null;
      polling = run();
    }, pollMs).unref();
  }

  async function pollAfresh(): Promise<void> {
    // The poll that runs may have read before this call.
    await polling;
    if (stopped) return;
    clear();
    polling ??= run();
    await polling;
  }

  return {
    schedule,
    catchUp: () => (catching ??= pollAfresh().finally(() => (catching = null))),
    running: () => polling,
    stop() {
      stopped = true;
      clear();
    },
  };
}

export interface RefresherOptions<T> {
  /**
   * Does the work for an item. Rejects where it failed. Not called again for the item before it has ended or
   * `timeoutMs` have passed.
   */
  readonly refresh: (item: T, signal: AbortSignal) => Promise<void>;
  readonly idOf: (item: T) => string;
  /** Whose it is: nobody takes all places. */
  readonly ownerOf: (item: T) => string;
  /** An item that is away is not tried; when it is back, it is at once. */
  readonly present: (item: T) => boolean;
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** From one refresh of an item to the next; about, so that not all come at once. */
  readonly everyMs: number;
  /**
   * The least time between two, for an item that is said to be stale. Doubles each time until a round of `everyMs`
   * went by without.
   */
  readonly gapMs: number;
  readonly timeoutMs: number;
  /** Items at once, of all and of one owner. */
  readonly concurrency: number;
  readonly concurrencyOfOwner: number;
  /** How often is looked for what is due. */
  readonly tickMs: number;
  readonly onFailed: (item: T, error: Error) => void;
}

export interface Refresher<T> {
  /** All items that there are now. New ones are due at once, and those that are another object than before. */
  keep(items: readonly T[]): void;
  /** The item is known to have changed: due as soon as it may. */
  stale(id: string): void;
  /** Starts what is due. */
  tick(): void;
  /** Resolves when no present item waits for its first refresh any more. */
  settled(): Promise<void>;
  /** Resolves when the item was refreshed once, or that failed; at once where there is no such item, or it is away. */
  tried(id: string): Promise<void>;
  /** Ends what runs. */
  close(): void;
}

interface State<T> {
  item: T;
  due: number;
  startedAt: number;
  /** Refreshes in a row that came before their time. */
  early: number;
  failures: number;
  tried: boolean;
  away: boolean;
  running: AbortController | null;
  /** Became stale while it was being refreshed. */
  again: boolean;
  /** Wait for the first refresh. */
  readonly waiting: (() => void)[];
}

const FIRST_RETRY_MS = 2_000;
/** Rounds that a server which never answers is left alone for at most. */
const ROUNDS_MAX = 6;

/**
 * Refreshes items in the background: each in its time, a few at once, less often where it fails or where it is
 * always said to have changed.
 */
export function createRefresher<T>(options: RefresherOptions<T>): Refresher<T> {
  const {
    refresh,
    idOf,
    ownerOf,
    present,
    now,
    random,
    everyMs,
    gapMs,
    timeoutMs,
    concurrency,
    concurrencyOfOwner,
    onFailed,
  } = options;
  const states = new Map<string, State<T>>();
  const runningOf = new Map<string, number>();
  let running = 0;
  let closed = false;
  let waiting: (() => void)[] = [];

  const jittered = (ms: number) => ms * (0.85 + 0.3 * random());
  const early = (state: State<T>) => {
    const gap = Math.min(everyMs, gapMs * 2 ** state.early);
    state.due = Math.min(state.due, state.startedAt + gap);
  };

  const tellSettled = () => {
    if (waiting.length === 0) return;
    for (const state of states.values()) if (!state.tried && !state.away) return;
    for (const resolve of waiting.splice(0)) resolve();
  };

  async function run(state: State<T>): Promise<void> {
    const { item } = state;
    const owner = ownerOf(item);
    const controller = new AbortController();
    const at = now();
    state.early = at - state.startedAt < everyMs / 2 ? state.early + 1 : 0;
    state.startedAt = at;
    state.running = controller;
    state.again = false;
    running++;
    runningOf.set(owner, (runningOf.get(owner) ?? 0) + 1);
    const timer = setTimeout(() => controller.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
    const aborted = Promise.withResolvers<never>();
    controller.signal.addEventListener('abort', () => aborted.reject(controller.signal.reason as Error), {
      once: true,
    });
    try {
      await Promise.race([refresh(item, controller.signal), aborted.promise]);
      state.failures = 0;
      state.due = at + jittered(everyMs);
    } catch (error) {
      state.failures++;
      state.due = at + jittered(Math.min(FIRST_RETRY_MS * 2 ** (state.failures - 1), everyMs * ROUNDS_MAX));
      if (!closed && states.get(idOf(item)) === state) onFailed(item, error as Error);
    } finally {
      clearTimeout(timer);
      running--;
      const left = runningOf.get(owner)! - 1;
      if (left === 0) runningOf.delete(owner);
      else runningOf.set(owner, left);
      state.running = null;
      state.tried = true;
      for (const resolve of state.waiting.splice(0)) resolve();
      if (state.again) early(state);
      tellSettled();
    }
    // Others may have waited for the place.
    tick();
  }

  function tick(): void {
    if (closed) return;
    const at = now();
    const due: State<T>[] = [];
    for (const state of states.values()) {
      if (state.running) continue;
      const here = present(state.item);
      // Its program may be another one now.
      if (here && state.away) early(state);
      state.away = !here;
      if (here && state.due <= at) due.push(state);
    }
    if (due.length > 1) due.sort((a, b) => a.due - b.due);
    for (const state of due) {
      if (running >= concurrency) break;
      if ((runningOf.get(ownerOf(state.item)) ?? 0) < concurrencyOfOwner) void run(state);
    }
    tellSettled();
  }

  const timer = setInterval(tick, options.tickMs).unref();
  return {
    keep(items) {
      const kept = new Set<string>();
      for (const item of items) {
        const id = idOf(item);
        kept.add(id);
        const state = states.get(id);
        if (!state) {
          const never = 0;
          states.set(id, {
            item,
            due: never,
            startedAt: never,
            early: 0,
            failures: 0,
            tried: false,
            away: false,
            running: null,
            again: false,
            waiting: [],
          });
        } else if (state.item !== item) {
          state.item = item;
          state.failures = 0;
          if (state.running) state.again = true;
          else early(state);
        }
      }
      for (const [id, state] of states)
        if (!kept.has(id)) {
          states.delete(id);
          for (const resolve of state.waiting.splice(0)) resolve();
          state.running?.abort(new Error('the offer is gone'));
        }
      tick();
    },
    stale(id) {
      const state = states.get(id);
      if (!state) return;
      if (state.running) state.again = true;
      else early(state);
      tick();
    },
    tick,
    settled: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        tick();
      }),
    async tried(id) {
      tick();
      const state = states.get(id);
      if (state && !state.tried && !state.away && !closed)
        await new Promise<void>((resolve) => state.waiting.push(resolve));
    },
    close() {
      closed = true;
      clearInterval(timer);
      for (const { running: one, waiting: others } of states.values()) {
        one?.abort(new Error('the gateway is closing'));
        for (const resolve of others.splice(0)) resolve();
      }
      states.clear();
      for (const resolve of waiting.splice(0)) resolve();
      waiting = [];
    },
  };
}

import { createTally } from '#gateway';
import { orAbort } from '../turn/waiting.ts';

export interface RefresherOptions<T> {
  /**
   * Does the work for an item. Rejects where it failed. Not called again for the item before it has ended or
   * `timeoutMs` have passed.
   */
  readonly refresh: (item: T, signal: AbortSignal) => Promise<void>;
  readonly idOf: (item: T) => string;
  /** The owner of an item: no owner takes all places. */
  readonly ownerOf: (item: T) => string;
  /** An item that is away is not tried; when it is back, it is tried at once. */
  readonly present: (item: T) => boolean;
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  /** From one refresh of an item to the next; about, so that not all come at once. */
  readonly everyMs: number;
  /**
   * The least time between two refreshes of an item that is said to be stale. Doubles each time until a round of
   * `everyMs` went by without.
   */
  readonly gapMs: number;
  readonly timeoutMs: number;
  /** Items that are refreshed at once, of all owners and of one. */
  readonly concurrency: number;
  readonly concurrencyOfOwner: number;
  /** How often due items are looked for. */
  readonly tickMs: number;
  readonly onFailed: (item: T, error: Error) => void;
}

interface Refresher<T> {
  /** Takes all items of now. New ones are due at once, and so are those that are another object than before. */
  keep(items: readonly T[]): void;
  /** The item has changed: it is due as soon as it may. */
  stale(id: string): void;
  /** Starts what is due. */
  tick(): void;
  /** Resolves when no present item waits for its first refresh any more. */
  settled(): Promise<void>;
  /** Resolves when the item was refreshed once, or that failed; at once where the item is unknown or away. */
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
/** Longest time without a try for a server that never answers, in rounds of `everyMs`. */
const ROUNDS_MAX = 6;

/**
 * Refreshes items in the background: each in its time, a few at once, less often where it fails or where it is
 * always said to have changed.
 */
export function createRefresher<T>(options: RefresherOptions<T>): Refresher<T> {
  const { refresh, idOf, ownerOf, present, now, random, everyMs, timeoutMs, onFailed } = options;
  const states = new Map<string, State<T>>();
  const waiting: (() => void)[] = [];
  const places = createPlaces(options.concurrency, options.concurrencyOfOwner);
  let closed = false;

  const jittered = (ms: number) => ms * (0.85 + 0.3 * random());
  /** Makes an item due before its time. */
  const hasten = (state: State<T>) => {
    const gap = Math.min(everyMs, options.gapMs * 2 ** state.early);
    if (state.running) state.again = true;
    else state.due = Math.min(state.due, state.startedAt + gap);
  };

  /** Notes whether an item is there. One that is back is due: its program may be another one now. */
  const look = (state: State<T>) => {
    const away = !present(state.item);
    if (!away && state.away) hasten(state);
    state.away = away;
  };

  const tellSettled = () => {
    if (waiting.length === 0) return;
    for (const state of states.values()) if (!state.tried && !state.away) return;
    wake(waiting);
  };

  async function run(state: State<T>): Promise<void> {
    const { item } = state;
    const controller = new AbortController();
    const at = now();
    state.early = at - state.startedAt < everyMs / 2 ? state.early + 1 : 0;
    state.startedAt = at;
    state.running = controller;
    state.again = false;
    try {
      await inTime(refresh(item, controller.signal), controller, timeoutMs);
      state.failures = 0;
      state.due = at + jittered(everyMs);
    } catch (error) {
      state.failures++;
      state.due = at + jittered(Math.min(FIRST_RETRY_MS * 2 ** (state.failures - 1), everyMs * ROUNDS_MAX));
      if (!closed && states.get(idOf(item)) === state) onFailed(item, error as Error);
    } finally {
      places.leave(ownerOf(item));
      state.running = null;
      state.tried = true;
      wake(state.waiting);
      if (state.again) hasten(state);
      tellSettled();
    }
    // Others may have waited for the place.
    tick();
  }

  function tick(): void {
    if (closed) return;
    const at = now();
    for (const state of states.values()) if (!state.running) look(state);
    const due = [...states.values()].filter((state) => !state.running && !state.away && state.due <= at);
    for (const state of due.sort((a, b) => a.due - b.due)) {
      if (places.take(ownerOf(state.item))) void run(state);
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
        if (!state) states.set(id, newState(item));
        else if (state.item !== item) {
          state.item = item;
          state.failures = 0;
          hasten(state);
        }
      }
      for (const [id, state] of states) {
        if (kept.has(id)) continue;
        states.delete(id);
        wake(state.waiting);
        state.running?.abort(new Error('the offer is gone'));
      }
      tick();
    },
    stale(id) {
      const state = states.get(id);
      if (!state) return;
      hasten(state);
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
      for (const state of states.values()) {
        state.running?.abort(new Error('the gateway is closing'));
        wake(state.waiting);
      }
      states.clear();
      wake(waiting);
    },
  };
}

/** An item that was never refreshed: it is due at once. */
function newState<T>(item: T): State<T> {
  const never = { due: 0, startedAt: 0, early: 0, failures: 0, tried: false };
  return { item, ...never, away: false, running: null, again: false, waiting: [] };
}

/** Places for items that are refreshed at once, of all owners and of one. */
function createPlaces(max: number, maxOfOwner: number) {
  const ofOwner = createTally();
  let taken = 0;
  return {
    take(owner: string): boolean {
      if (taken >= max || ofOwner.of(owner) >= maxOfOwner) return false;
      taken++;
      ofOwner.add(owner, 1);
      return true;
    },
    leave(owner: string): void {
      taken--;
      ofOwner.add(owner, -1);
    },
  };
}

/** Waits for work, which is aborted after `ms`. */
async function inTime(work: Promise<void>, controller: AbortController, ms: number): Promise<void> {
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${ms} ms`)), ms);
  try {
    await orAbort(work, controller.signal);
  } finally {
    clearTimeout(timer);
  }
}

function wake(waiting: (() => void)[]): void {
  for (const resolve of waiting.splice(0)) resolve();
}

import { getOrInsert } from '#wire';
import { orAbort } from '../request/waiting.ts';
import { type LookPlace, LookPlaces, type Party } from './look-places.ts';

export interface RefresherOptions<T> {
  /**
   * Does the work for an item. Rejects on failure. Not called again for the item until it has ended or `timeoutMs` have
   * passed. It must pass each wait for others through `wait`.
   */
  readonly refresh: (item: T, signal: AbortSignal, wait: LookPlace['wait']) => Promise<void>;
  readonly idOf: (item: T) => string;
  readonly ownerOf: (item: T) => string;
  /** The network of an item's owner, whose owners get together what one owner gets. Default: the owner alone. */
  readonly networkOf?: ((item: T) => string | null) | undefined;
  /**
   * Whether an item can be reached. An item that cannot is not tried. When it can be reached again, it is tried soon.
   */
  readonly present: (item: T) => boolean;
  readonly now: () => number;
  /** A random number in [0, 1). */
  readonly random: () => number;
  /**
   * The time from one refresh of an item to the next. It is varied at random, so that refreshes do not come all at
   * once.
   */
  readonly everyMs: number;
  /**
   * The least time between two refreshes of an item that was reported as stale. It doubles with each early refresh,
   * until one comes after at least half of `everyMs`.
   */
  readonly gapMs: number;
  readonly timeoutMs: number;
  /** Most items that are refreshed at the same time, without those that take long, and of one owner with those. */
  readonly concurrency: number;
  readonly concurrencyOfOwner: number;
  /** A refresh that has waited longer than this leaves its place to others, and goes on. */
  readonly longMs: number;
  /** Most refreshes that take long. For one more, the oldest of those who have most of them is aborted. */
  readonly longMax: number;
  readonly tickMs: number;
  readonly onFailed: (item: T, error: Error) => void;
}

interface Refresher<T> {
  /**
   * Replaces the set of items. New items are due at once. Items that are a different object than before are due early.
   */
  keep(items: readonly T[]): void;
  /**
   * Reports that the item has changed. It is due as soon as `gapMs` allows. Resolves when the refresh that runs now has
   * ended, or at once if none runs.
   */
  stale(id: string): Promise<void>;
  tick(): void;
  /** Resolves when no present item waits for its first refresh. */
  settled(): Promise<void>;
  /**
   * Resolves when an item that was never refreshed, or whose last refresh failed, was tried once more. It is tried as
   * soon as `gapMs` allows; if that is later, this resolves at once. So it does if the item is unknown or away.
   */
  tried(id: string): Promise<void>;
  /** Aborts the running refreshes. */
  close(): void;
}

interface RefreshState<T> {
  item: T;
  due: number;
  startedAt: number;
  /** The number of consecutive refreshes that were early. */
  early: number;
  failures: number;
  tried: boolean;
  away: boolean;
  running: AbortController | null;
  /** It became stale during a refresh. */
  again: boolean;
  readonly waiting: (() => void)[];
}

const FIRST_RETRY_MS = 2_000;
/** The longest pause between tries for a server that never answers, in multiples of `everyMs`. */
const ROUNDS_MAX = 6;

/**
 * Refreshes items in the background, a few at the same time. An item that fails, or is reported as stale often, is
 * refreshed less often.
 */
export function createRefresher<T>(options: RefresherOptions<T>): Refresher<T> {
  const { refresh, idOf, ownerOf, networkOf, present, now, random, everyMs, timeoutMs, onFailed } = options;
  const states = new Map<string, RefreshState<T>>();
  const waiting: (() => void)[] = [];
  const places = new LookPlaces({
    total: options.concurrency,
    ofOwner: options.concurrencyOfOwner,
    longMs: options.longMs,
    longTotal: options.longMax,
    onFree: tick,
  });
  let closed = false;

  const jittered = (ms: number) => ms * (0.85 + 0.3 * random());
  const hasten = (state: RefreshState<T>) => {
    const gap = Math.min(everyMs, options.gapMs * 2 ** state.early);
    if (state.running) state.again = true;
    else state.due = Math.min(state.due, state.startedAt + gap);
  };

  /** Notes whether an item can be reached. If it comes back, it is due early: its server may have changed. */
  const poll = (state: RefreshState<T>) => {
    const away = !present(state.item);
    if (!away && state.away) hasten(state);
    state.away = away;
  };

  const tellSettled = () => {
    if (waiting.length === 0) return;
    for (const state of states.values()) if (!state.tried && !state.away) return;
    wake(waiting);
  };

  async function run(state: RefreshState<T>, party: Party): Promise<void> {
    const { item } = state;
    const controller = new AbortController();
    const place = places.take(party, () => controller.abort(new Error('no answer yet, and other servers wait')));
    const at = now();
    state.early = at - state.startedAt < everyMs / 2 ? state.early + 1 : 0;
    state.startedAt = at;
    state.running = controller;
    state.again = false;
    try {
      await inTime(refresh(item, controller.signal, place.wait), controller, timeoutMs);
      state.failures = 0;
      state.due = at + jittered(everyMs);
    } catch (error) {
      state.failures++;
      state.due = at + jittered(Math.min(FIRST_RETRY_MS * 2 ** (state.failures - 1), everyMs * ROUNDS_MAX));
      if (!closed && states.get(idOf(item)) === state) onFailed(item, error as Error);
    } finally {
      place.leave();
      state.running = null;
      state.tried = true;
      wake(state.waiting);
      if (state.again) hasten(state);
      tellSettled();
    }
    // Other items may have waited for the place.
    tick();
  }

  function tick(): void {
    if (closed) return;
    const at = now();
    /** By network and owner. */
    const waiting = new Map<string, Map<string, RefreshState<T>[]>>();
    for (const state of states.values()) {
      if (state.running) continue;
      poll(state);
      if (state.away || state.due > at) continue;
      const owner = ownerOf(state.item);
      const owners = getOrInsert(waiting, networkOf?.(state.item) ?? owner, () => new Map<string, RefreshState<T>[]>());
      getOrInsert(owners, owner, () => []).push(state);
    }
    for (let next = places.next(waiting); next !== null; next = places.next(waiting)) {
      const owners = waiting.get(next.network)!;
      const own = owners.get(next.owner)!;
      const first = own.reduce((earliest, one) => (one.due < earliest.due ? one : earliest));
      own.splice(own.indexOf(first), 1);
      if (own.length === 0) owners.delete(next.owner);
      void run(first, next);
    }
    tellSettled();
  }

  const timer = setInterval(tick, options.tickMs).unref();
  return {
    keep(items) {
      const names = new Set<string>();
      for (const item of items) {
        const id = idOf(item);
        names.add(id);
        const state = states.get(id);
        if (!state) states.set(id, newState(item));
        else if (state.item !== item) {
          state.item = item;
          state.failures = 0;
          hasten(state);
        }
      }
      for (const [id, state] of states) {
        if (names.has(id)) continue;
        states.delete(id);
        wake(state.waiting);
        state.running?.abort(new Error('the offer is gone'));
      }
      tick();
    },
    async stale(id) {
      const state = states.get(id);
      if (!state) return;
      hasten(state);
      tick();
      if (state.running) await endOf(state);
    },
    tick,
    settled: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        tick();
      }),
    async tried(id) {
      const state = states.get(id);
      // Somebody waits for it, so the pause after its failures is cut short.
      if (state && state.failures > 0 && !state.running) hasten(state);
      tick();
      if (state && (state.running || !state.tried) && !state.away && !closed) await endOf(state);
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

const endOf = <T>({ waiting }: RefreshState<T>) => new Promise<void>((resolve) => waiting.push(resolve));

function newState<T>(item: T): RefreshState<T> {
  const never = { due: 0, startedAt: 0, early: 0, failures: 0, tried: false };
  return { item, ...never, away: false, running: null, again: false, waiting: [] };
}

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

import type { KeptSession, KeptSessionsOptions } from './kept-sessions.ts';
import { createSessionCache, type LiveSession } from './session-cache.ts';

interface LiveSessionsOptions<S extends KeptSession> extends Pick<
  KeptSessionsOptions<S>,
  'kind' | 'store' | 'toState' | 'fromState' | 'now' | 'onError'
> {
  readonly max: number;
  readonly changeable: (session: S) => string;
  /** The expiry of a session that was last used at a time; both in epoch milliseconds. */
  readonly expiryOf: (usedAt: number) => number;
  /** The least time between two updates of the expiry in the store. */
  readonly touchMs: number;
}

/** The sessions in the memory of this gateway. Extends their expiry in the store while they are used. */
interface LiveSessions<S extends KeptSession> {
  readonly size: number;
  add(session: S, touchedAt: number): LiveSession<S>;
  /** Finds a session of an account, here or in the store. Null if neither has it. */
  find(id: string, account: string): Promise<LiveSession<S> | null>;
  /** Begins a use of a session that was found. Null if it has ended, or does not satisfy `fits`. */
  enter(found: LiveSession<S>, fits: (session: S) => boolean): Promise<LiveSession<S> | null>;
  /** Ends a use, and stores its changes. */
  leave(live: LiveSession<S>): void;
  /** Ends the session here. Resolves when nobody uses it any more; null if nobody does now. */
  drop(id: string): Promise<void> | null;
  /** Extends the sessions that are in use, and forgets those that nobody has used since `time`. */
  sweep(time: number): Promise<void>;
  clear(): void;
}

export function createLiveSessions<S extends KeptSession>({
  kind,
  store,
  max,
  toState,
  fromState,
  changeable,
  expiryOf,
  touchMs,
  now,
  onError,
}: LiveSessionsOptions<S>): LiveSessions<S> {
  const cache = createSessionCache<S>(max);
  /** Sessions that are being read from the store. Requests that come at the same time share one read. */
  const arriving = new Map<string, Promise<LiveSession<S> | null>>();

  function add(session: S, touchedAt: number): LiveSession<S> {
    const ended = new AbortController();
    const live = { session, ended, uses: 0, onUnused: null, lastUsedAt: now(), touchedAt, kept: changeable(session) };
    cache.add(live);
    return live;
  }

  async function read(id: string, account: string): Promise<LiveSession<S> | null> {
    const row = await store.get(id);
    if (row === null || row.kind !== kind || row.account !== account) return null;
    const session = fromState(row);
    // 0, because it is not known when it was last used elsewhere.
    return session && (cache.get(id) ?? add(session, 0));
  }

  function drop(id: string): Promise<void> | null {
    const live = cache.get(id);
    if (!live) return null;
    cache.delete(live);
    const { promise, resolve } = Promise.withResolvers<void>();
    live.onUnused = resolve;
    live.ended.abort();
    return live.uses === 0 ? null : promise;
  }

  /**
   * The live state of a session that was found a moment ago. Meanwhile the session may have been forgotten, or read
   * again. Null if it has ended here.
   */
  function present(found: LiveSession<S>): LiveSession<S> | null {
    const there = cache.get(found.session.id);
    if (there) return there;
    if (found.ended.signal.aborted) return null;
    // If it ended while it was not in memory, this gateway was not notified. So the store is asked again.
    found.touchedAt = -Infinity;
    cache.add(found);
    return found;
  }

  function use(live: LiveSession<S>, uses: 1 | 0 | -1): void {
    live.uses += uses;
    live.lastUsedAt = now();
    cache.used(live);
    if (live.uses === 0) live.onUnused?.();
  }

  /** False if the session has ended elsewhere. An error of the store ends no session. */
  async function touch(live: LiveSession<S>): Promise<boolean> {
    const at = now();
    if (live.touchedAt + touchMs > at) return true;
    live.touchedAt = at;
    try {
      return await store.touch(live.session.id, expiryOf(at));
    } catch (error) {
      onError(error);
      return true;
    }
  }

  return {
    get size() {
      return cache.size;
    },
    add,
    async find(id, account) {
      const live = cache.get(id);
      if (live) return live.session.account === account ? live : null;
      const key = `${id} ${account}`;
      let arrival = arriving.get(key);
      if (!arrival) arriving.set(key, (arrival = read(id, account).finally(() => arriving.delete(key))));
      return arrival;
    },
    async enter(found, fits) {
      const live = present(found);
      if (live === null || !fits(live.session)) return null;
      use(live, 1);
      if (await touch(live)) return live;
      use(live, -1);
      void drop(live.session.id);
      return null;
    },
    leave(live) {
      use(live, -1);
      const { session } = live;
      const changed = changeable(session);
      if (changed === live.kept) return;
      live.kept = changed;
      store.change(session.id, toState(session)).catch(onError);
    },
    drop,
    async sweep(time) {
      for (const live of cache.busy()) {
        use(live, 0);
        if (!(await touch(live))) void drop(live.session.id);
      }
      cache.forgetUnused(time);
    },
    clear: () => cache.clear(),
  };
}

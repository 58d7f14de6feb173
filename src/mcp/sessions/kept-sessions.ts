import { randomBytes } from 'node:crypto';
import type { Config } from '#config';
import { TransientMap } from '#maps';
import { createCounter } from '#limits';
import { sees, type TaskOwner } from '#tasks';
import type { SessionStore, StoredSession } from '../request/session-store.ts';

export interface KeptSession {
  /** The gateway's own random id. The client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** The ledger account that opened the session. No other account may use it. */
  readonly account: string;
  /** As in TaskOwner. Absent in sessions that older gateways stored: these belong to the whole account. */
  readonly within?: string | null;
}

export interface KeptUse<S> {
  readonly session: S;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
  /** Ends this use. Call it once. */
  leave(): void;
}

interface EndedSession<S> {
  readonly session: S;
  /** Resolves when the requests and streams that used it here are over; null if nobody uses it. */
  readonly unused: Promise<void> | null;
}

/**
 * Sessions of one kind. They are in memory where they are used, and in the database so that any gateway can continue
 * them.
 */
export interface KeptSessions<S extends KeptSession> {
  /**
   * Runs `make` with room for one session. `make` stores its session with `keep`. Resolves to null if the owner has
   * its share of sessions, see limitText, and all are in use.
   */
  open<T>(owner: TaskOwner, make: (keep: (session: S) => Promise<void>) => Promise<T>): Promise<T | null>;
  /** Stores the given session under a new id. Null as in `open`. */
  add(session: Omit<S, 'id'>): Promise<S | null>;
  /**
   * Takes a session for one request or stream. Null if the owner has no such session, or the session does not satisfy
   * `fits`.
   */
  enter(id: string, owner: TaskOwner, fits?: (session: S) => boolean): Promise<KeptUse<S> | null>;
  /** Ends a session in the database and here. Null if `enter` would give null, or the session has already ended. */
  end(id: string, owner: TaskOwner, fits?: (session: S) => boolean): Promise<EndedSession<S> | null>;
  /** Ends a session here that has ended elsewhere. */
  drop(id: string): void;
  /**
   * Ends at most `limit` expired sessions of any gateway, and returns how many. Extends the sessions that are in use
   * here. Called every few seconds, even if the previous sweep still runs.
   */
  sweep(limit?: number): Promise<number>;
  count(): number;
  /** Forgets the sessions in memory. Any gateway can continue those in the database. */
  close(): void;
}

export interface KeptSessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  readonly now: () => number;
  /** Called with changes that could not be stored. The session continues. */
  readonly onError: (error: unknown) => void;
}

interface KeptSessionsOptions<S extends KeptSession> extends KeptSessionsDeps {
  readonly kind: string;
  readonly toState: (session: S) => string;
  /** null for a session that cannot continue. */
  readonly fromState: (row: StoredSession) => S | null;
  /** The part of a session that a request may change, as text. A change of it is stored. Default: nothing. */
  readonly changeable?: (session: S) => string;
  readonly onEvicted?: (row: StoredSession) => void;
  readonly onSwept?: (rows: readonly StoredSession[]) => Promise<void> | void;
}

/** An id that nobody can guess. */
export const newSessionId = (): string => randomBytes(32).toString('base64url');

const ID = /^[\w-]{43}$/;
const TOUCH_MS = 60_000;
const SWEPT_MAX = 1_000;

export function createKeptSessions<S extends KeptSession>(options: KeptSessionsOptions<S>): KeptSessions<S> {
  const { kind, store, toState, fromState, changeable = () => '', onEvicted, onSwept, now, onError } = options;
  const { sessionsMax, sessionsInMemoryMax, sessionIdleMs } = options.config;
  /** The least time between two updates of a session's expiry in the store. */
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late. It learns of a long use only at the next sweep.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const cache = new SessionCache<S>(sessionsInMemoryMax);
  /** Sessions that are being read from the store. Requests that come at the same time share one read. */
  const arriving = new Map<string, Promise<LiveSession<S> | null>>();
  const opening = createCounter();

  function remember(session: S, touchedAt: number): LiveSession<S> {
    const ended = new AbortController();
    const live = {
      session,
      ended,
      uses: 0,
      onUnused: null,
      lastUsedAt: now(),
      touchedAt,
      savedState: changeable(session),
    };
    cache.add(live);
    return live;
  }

  async function read(id: string, account: string): Promise<LiveSession<S> | null> {
    const row = await store.get(id);
    if (row === null || row.kind !== kind || row.account !== account) return null;
    const session = fromState(row);
    // 0, because it is not known when the session was last used at another gateway.
    return session && (cache.get(id) ?? remember(session, 0));
  }

  async function find(id: string, account: string): Promise<LiveSession<S> | null> {
    const live = cache.get(id);
    if (live) return live.session.account === account ? live : null;
    const key = `${id} ${account}`;
    let arrival = arriving.get(key);
    if (!arrival) arriving.set(key, (arrival = read(id, account).finally(() => arriving.delete(key))));
    return arrival;
  }

  /**
   * The state in memory of a session that was found a moment ago. Meanwhile the session may have been forgotten, or
   * read again. Null if it has ended at this gateway.
   */
  function present(live: LiveSession<S>): LiveSession<S> | null {
    const there = cache.get(live.session.id);
    if (there) return there;
    if (live.ended.signal.aborted) return null;
    // If it ended while it was not in memory, this gateway was not notified. So the store is asked again.
    live.touchedAt = -Infinity;
    cache.add(live);
    return live;
  }

  function use(live: LiveSession<S>, uses: 1 | 0 | -1): void {
    live.uses += uses;
    live.lastUsedAt = now();
    cache.used(live);
    if (live.uses === 0) live.onUnused?.();
  }

  /** Extends a session in the store. False if it has ended at another gateway. A failing store ends no session. */
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

  /** Ends a use of a session, and stores the changes that the use made. */
  function leave(live: LiveSession<S>): void {
    use(live, -1);
    const { session } = live;
    const changed = changeable(session);
    if (changed === live.savedState) return;
    live.savedState = changed;
    store.change(session.id, toState(session)).catch(onError);
  }

  /** Ends a session in memory. Resolves when nobody uses it any more; null if nobody does now. */
  function drop(id: string): Promise<void> | null {
    const live = cache.get(id);
    if (!live) return null;
    cache.delete(live);
    const { promise, resolve } = Promise.withResolvers<void>();
    live.onUnused = resolve;
    live.ended.abort();
    return live.uses === 0 ? null : promise;
  }

  /** Whether one more session may be opened. If needed, a session that was idle for a while is ended to make room. */
  async function hasRoom(owner: TaskOwner): Promise<boolean> {
    const { own, together } = await store.countOf(owner, kind);
    if (own + together + 2 * opening.countOf(owner.account) <= 2 * sessionsMax) return true;
    const oldest = await store.takeOldest(owner, kind, expiryOf(now() - 2 * touchMs));
    if (oldest === null) return false;
    void drop(oldest.id);
    onEvicted?.(oldest);
    return true;
  }

  const open: KeptSessions<S>['open'] = async (owner, make) => {
    const { account, within } = owner;
    opening.add(account, 1);
    try {
      if (!(await hasRoom(owner))) return null;
      return await make(async (session) => {
        await store.put({ id: session.id, account, within, kind, state: toState(session), expiresAt: expiryOf(now()) });
        remember(session, now());
      });
    } finally {
      opening.add(account, -1);
    }
  };

  const enter: KeptSessions<S>['enter'] = async (id, owner, fits = () => true) => {
    const liveSession = ID.test(id) ? await find(id, owner.account) : null;
    const live = liveSession && present(liveSession);
    if (live === null) return null;
    const { session } = live;
    if (!sees({ account: session.account, within: session.within ?? null }, owner) || !fits(session)) return null;
    use(live, 1);
    if (await touch(live)) return { session, ended: live.ended.signal, leave: () => leave(live) };
    use(live, -1);
    void drop(session.id);
    return null;
  };

  return {
    open,
    add: (fields) =>
      open({ account: fields.account, within: fields.within ?? null }, async (keep) => {
        const session = { id: newSessionId(), ...fields } as unknown as S;
        await keep(session);
        return session;
      }),
    enter,
    async end(id, owner, fits) {
      const used = await enter(id, owner, fits);
      if (used === null) return null;
      used.leave();
      const ended = await store.delete(id);
      const unused = drop(id);
      return ended ? { session: used.session, unused } : null;
    },
    drop: (id) => void drop(id),
    async sweep(limit = SWEPT_MAX) {
      const idleSince = now() - sessionIdleMs;
      for (const live of cache.busy()) {
        use(live, 0);
        if (!(await touch(live))) void drop(live.session.id);
      }
      cache.forgetUnused(idleSince);
      const rows = await store.sweep(kind, limit);
      for (const { id } of rows) void drop(id);
      await onSwept?.(rows);
      return rows.length;
    },
    count: () => cache.size,
    close: () => cache.clear(),
  };
}

interface LiveSession<S extends KeptSession> {
  readonly session: S;
  readonly ended: AbortController;
  uses: number;
  /** Called when the last use of a session that has ended is over. */
  onUnused: (() => void) | null;
  lastUsedAt: number;
  /** When its expiry was last updated in the store. */
  touchedAt: number;
  /** The changeable part of the session, as the store has it. */
  savedState: string;
}

/**
 * A cache of sessions by id, with at most `max` entries. A full cache forgets the least recently used session, but
 * never one that is in use.
 */
class SessionCache<S extends KeptSession> {
  /** In the order of their last use. */
  readonly #byId = new TransientMap<string, LiveSession<S>>();
  readonly #busy = new TransientMap<LiveSession<S>, null>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): LiveSession<S> | undefined {
    return this.#byId.get(id);
  }

  add(live: LiveSession<S>): void {
    if (this.#byId.size >= this.#max) {
      const oldest = Iterator.from(this.#byId.values()).find(({ uses }) => uses === 0);
      if (oldest) this.delete(oldest);
    }
    this.#byId.set(live.session.id, live);
  }

  used(live: LiveSession<S>): void {
    const { id } = live.session;
    if (this.#byId.get(id) !== live) return;
    this.#byId.delete(id);
    this.#byId.set(id, live);
    if (live.uses > 0) this.#busy.set(live, null);
    else this.#busy.delete(live);
  }

  delete(live: LiveSession<S>): void {
    if (this.#byId.get(live.session.id) === live) this.#byId.delete(live.session.id);
    this.#busy.delete(live);
  }

  busy(): Iterable<LiveSession<S>> {
    return this.#busy.keys();
  }

  /** Forgets sessions that were last used before `time`. The store still has them. */
  forgetUnused(time: number): void {
    for (const live of this.#byId.values()) {
      if (live.lastUsedAt > time) return;
      if (live.uses === 0) this.delete(live);
    }
  }

  clear(): void {
    this.#byId.clear();
    this.#busy.clear();
  }
}

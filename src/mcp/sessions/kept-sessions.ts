import { randomBytes } from 'node:crypto';
import type { Config } from '#config';
import { createTally } from '#gateway';
import type { SessionStore, StoredSession } from '#tasks';
import { createSessionCache, type LiveSession } from './session-cache.ts';

/** What every session of a client has. */
export interface KeptSession {
  /** Ours, random; what the client sends as `Mcp-Session-Id`. */
  readonly id: string;
  /** Ledger account of who opened it; nobody else may use it. */
  readonly account: string;
}

/** A session in use, by one request or stream. */
export interface KeptUse<S> {
  readonly session: S;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
  /** The request or stream is over. Called once. */
  leave(): void;
}

/** Sessions of one kind: in memory where they are used, in the database so that any gateway can go on with them. */
export interface KeptSessions<S extends KeptSession> {
  /**
   * Runs `make` with room for one session, which it keeps; null where the account has as many as it may, all of
   * them in use.
   */
  open<T>(account: string, make: (keep: (session: S) => Promise<void>) => Promise<T>): Promise<T | null>;
  /**
   * Takes a session for one request or stream; null, whatever the reason, where this account has no such session,
   * or not one that `fits`.
   */
  enter(id: string, account: string, fits?: (session: S) => boolean): Promise<KeptUse<S> | null>;
  /** Ends it in the database and here. False where it had ended before. */
  remove(id: string): Promise<boolean>;
  /** It has ended elsewhere. */
  drop(id: string): void;
  /**
   * Ends those whose time is over, of any gateway, at most `limit`, and gives them. Keeps those alive that run
   * something here.
   */
  sweep(limit: number): Promise<readonly StoredSession[]>;
  /** In the memory of this gateway. */
  readonly count: number;
  /** Forgets everything here; what the database has can be gone on with. */
  close(): void;
}

export interface KeptSessionsOptions<S extends KeptSession> {
  /** The word for these among the sessions that the gateway keeps. */
  readonly kind: string;
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  /** What is kept of a session, as text. */
  readonly toState: (session: S) => string;
  /** null for one that nothing can be done with any more. */
  readonly fromState: (row: StoredSession) => S | null;
  /** What of a session may change in a request, as text: it is kept when that has changed. Default: nothing. */
  readonly changeable?: (session: S) => string;
  /** Told of a session that made room for another of its account. */
  readonly onEvicted?: (row: StoredSession) => void;
  readonly now: () => number;
  /** Told of what could not be kept. The session goes on. */
  readonly onError: (error: unknown) => void;
}

/** An id that nobody can guess. */
export const newSessionId = (): string => randomBytes(32).toString('base64url');

/** What an account is told that may open no more. */
export const tooManySessions = (max: number): string =>
  `This account has ${max} sessions, all of them in use: end one with DELETE first`;

const ID = /^[\w-]{43}$/;
/** How often the store is told that a session is used. */
const TOUCH_MS = 60_000;

export function createKeptSessions<S extends KeptSession>(options: KeptSessionsOptions<S>): KeptSessions<S> {
  const { kind, store, toState, fromState, changeable = () => '', now, onError } = options;
  const { sessionsMax, sessionsInMemoryMax, sessionIdleMs } = options.config;
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late, and of one that goes on with the next sweep only.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const cache = createSessionCache<S>(sessionsInMemoryMax);
  /** Sessions that are being opened, by account. */
  const opening = createTally();
  const arriving = new Map<string, Promise<LiveSession<S> | null>>();

  function drop(id: string): void {
    const live = cache.get(id);
    if (!live) return;
    cache.delete(live);
    live.ended.abort();
  }

  function remember(session: S, touchedAt: number): LiveSession<S> {
    const live = {
      session,
      ended: new AbortController(),
      uses: 0,
      lastUsedAt: now(),
      touchedAt,
      kept: changeable(session),
    };
    cache.add(live);
    return live;
  }

  /** Whether one more may be opened. One that nobody used for a while makes room. */
  async function hasRoom(account: string): Promise<boolean> {
    if ((await store.countOf(account, kind)) + opening.of(account) <= sessionsMax) return true;
    const oldest = await store.takeOldest(account, kind, expiryOf(now() - 2 * touchMs));
    if (oldest === null) return false;
    drop(oldest.id);
    options.onEvicted?.(oldest);
    return true;
  }

  /** The session that this id stands for in the store. Looked up once for all that ask at the same time. */
  function takeUp(id: string, account: string): Promise<LiveSession<S> | null> {
    const key = `${id} ${account}`;
    let arrival = arriving.get(key);
    if (!arrival) {
      const find = async () => {
        const row = await store.get(id);
        if (row === null || row.kind !== kind || row.account !== account) return null;
        const session = fromState(row);
        // When it was last used elsewhere is not known.
        return session && (cache.get(id) ?? remember(session, 0));
      };
      arrival = find().finally(() => arriving.delete(key));
      arriving.set(key, arrival);
    }
    return arrival;
  }

  /** False where the session has ended elsewhere. A store that is away ends nothing. */
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

  function keepChanges(live: LiveSession<S>): void {
    const changed = changeable(live.session);
    if (changed === live.kept) return;
    live.kept = changed;
    store.change(live.session.id, toState(live.session)).catch(onError);
  }

  return {
    async open(account, make) {
      opening.add(account, 1);
      try {
        if (!(await hasRoom(account))) return null;
        return await make(async (session) => {
          await store.put({ id: session.id, account, kind, state: toState(session), expiresAt: expiryOf(now()) });
          remember(session, now());
        });
      } finally {
        opening.add(account, -1);
      }
    },
    async enter(id, account, fits = () => true) {
      if (!ID.test(id)) return null;
      const live = cache.get(id) ?? (await takeUp(id, account));
      if (!live || live.session.account !== account || !fits(live.session)) return null;
      const use = (uses: number) => {
        live.uses += uses;
        live.lastUsedAt = now();
        cache.used(live);
      };
      use(1);
      if (!(await touch(live))) {
        use(-1);
        drop(id);
        return null;
      }
      return {
        session: live.session,
        ended: live.ended.signal,
        leave() {
          use(-1);
          keepChanges(live);
        },
      };
    },
    async remove(id) {
      const ended = await store.delete(id);
      drop(id);
      return ended;
    },
    drop,
    async sweep(limit) {
      for (const live of cache.busy()) {
        live.lastUsedAt = now();
        cache.used(live);
        if (!(await touch(live))) drop(live.session.id);
      }
      cache.forgetUnused(now() - sessionIdleMs);
      const rows = await store.sweep(kind, limit);
      for (const { id } of rows) drop(id);
      return rows;
    },
    get count() {
      return cache.size;
    },
    close: () => cache.clear(),
  };
}

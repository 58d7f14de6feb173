import { randomBytes } from 'node:crypto';
import type { Config, SessionStore, StoredSession } from '#gateway';
import { createSessionCache, type LiveSession } from '../session-cache.ts';
import { createTally } from '../tally.ts';
import { AGGREGATE_KIND, fromState, toState, type AggregateSession } from './session.ts';

/** The sessions of legacy clients with all services: in memory where they are used, in the database so that any gateway can go on with them. */
export interface AggregateSessions {
  /** null where the account has as many as it may, all of them in use. Rejects with the store's error. */
  open(told: Pick<AggregateSession, 'account' | 'revision' | 'initialize' | 'selection'>): Promise<AggregateSession | null>;
  /** Takes a session for one request or stream; null, whatever the reason, where this account has no such session. */
  enter(id: string, account: string): Promise<AggregateUse | null>;
  /** Changes a session as it is now, also by other gateways. False where it has ended. Rejects with the store's error. */
  change(session: AggregateSession, apply?: () => void): Promise<boolean>;
  /** Ends a session with its parts. False where `enter` would give null. */
  end(id: string, account: string): Promise<boolean>;
  /** Ends those whose time is over, of any gateway; returns how many. Keeps those alive that run something here. Called every few seconds. */
  sweep(limit?: number): Promise<number>;
  /** In the memory of this gateway. */
  readonly count: number;
  /** Forgets everything here; what the database has can be gone on with. */
  close(): void;
}

export interface AggregateUse {
  readonly session: AggregateSession;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
  /** The request or stream is over. Called once. */
  leave(): void;
}

export interface AggregateSessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  /** Ends the parts of a session that is over. Never rejects. */
  readonly endParts: (session: AggregateSession) => Promise<void>;
  readonly now: () => number;
  /** Told of what could not be kept. The session goes on. */
  readonly onError: (error: unknown) => void;
}

type Live = LiveSession<AggregateSession>;

const ID = /^[\w-]{43}$/;
/** How often the store is told that a session is used. */
const TOUCH_MS = 60_000;

export function createAggregateSessions({ store, config, endParts, now, onError }: AggregateSessionsDeps): AggregateSessions {
  const { sessionsMax, sessionIdleMs } = config;
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late, and of one that goes on with the next sweep only.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const cache = createSessionCache<AggregateSession>(config.sessionsInMemoryMax);
  /** Sessions that are being opened, by account. */
  const opening = createTally();
  /** The last change of each session: the next one is on what it left. */
  const changing = new WeakMap<AggregateSession, Promise<unknown>>();

  function drop(id: string): void {
    const live = cache.get(id);
    if (!live) return;
    cache.delete(live);
    live.ended.abort();
  }

  function remember(session: AggregateSession, touchedAt: number): Live {
    const live = { session, ended: new AbortController(), uses: 0, lastUsedAt: now(), touchedAt, kept: '' };
    cache.add(live);
    return live;
  }

  /** Whether one more may be opened. One that nobody used for a while makes room. */
  async function hasRoom(account: string): Promise<boolean> {
    if ((await store.countOf(account, AGGREGATE_KIND)) + opening.of(account) <= sessionsMax) return true;
    const oldest = await store.takeOldest(account, AGGREGATE_KIND, expiryOf(now() - 2 * touchMs));
    if (oldest !== null) over(oldest);
    return oldest !== null;
  }

  function over(row: StoredSession): void {
    drop(row.id);
    void endParts(fromState(row));
  }

  async function takeUp(id: string, account: string): Promise<Live | null> {
    const row = await store.get(id);
    if (row === null || row.kind !== AGGREGATE_KIND || row.account !== account) return null;
    // Another request may have been faster. When it was last used elsewhere is not known.
    return cache.get(id) ?? remember(fromState(row), 0);
  }

  /** False where the session has ended elsewhere. A store that is away ends nothing. */
  async function touch(live: Live): Promise<boolean> {
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

  async function enter(id: string, account: string): Promise<AggregateUse | null> {
    if (!ID.test(id)) return null;
    const live = cache.get(id) ?? (await takeUp(id, account));
    if (!live || live.session.account !== account) return null;
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
    return { session: live.session, ended: live.ended.signal, leave: () => use(-1) };
  }

  async function change(session: AggregateSession, apply: (() => void) | undefined): Promise<boolean> {
    const row = await store.get(session.id);
    if (row !== null) {
      const { parts, logLevel } = fromState(row);
      session.parts = parts;
      session.logLevel = logLevel;
      if (!apply) return true;
      apply();
      if (await store.change(session.id, toState(session))) return true;
    }
    drop(session.id);
    return false;
  }

  return {
    async open(told) {
      const { account } = told;
      opening.add(account, 1);
      try {
        if (!(await hasRoom(account))) return null;
        const session: AggregateSession = { id: randomBytes(32).toString('base64url'), ...told, logLevel: null, parts: new Map() };
        await store.put({ id: session.id, account, kind: AGGREGATE_KIND, state: toState(session), expiresAt: expiryOf(now()) });
        remember(session, now());
        return session;
      } finally {
        opening.add(account, -1);
      }
    },
    enter,
    change(session, apply) {
      const next = (changing.get(session) ?? Promise.resolve()).then(() => change(session, apply));
      changing.set(
        session,
        next.catch(() => {}),
      );
      return next;
    },
    async end(id, account) {
      const use = await enter(id, account);
      if (use === null) return false;
      use.leave();
      const known = await store.get(id);
      const ended = await store.delete(id);
      drop(id);
      if (ended) await endParts(known ? fromState(known) : use.session);
      return ended;
    },
    async sweep(limit = 1_000) {
      for (const live of cache.busy()) {
        live.lastUsedAt = now();
        cache.used(live);
        if (!(await touch(live))) drop(live.session.id);
      }
      cache.forgetUnused(now() - sessionIdleMs);
      const rows = await store.sweep(AGGREGATE_KIND, limit);
      for (const row of rows) over(row);
      return rows.length;
    },
    get count() {
      return cache.size;
    },
    close: () => cache.clear(),
  };
}

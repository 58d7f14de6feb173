import { randomBytes } from 'node:crypto';
import type { Config } from '#config';
import { createCounter } from '#gateway';
import { sees, type SessionStore, type StoredSession, type TaskOwner } from '#tasks';
import { createLiveSessions } from './live-sessions.ts';

/** The members that every client session has. */
export interface KeptSession {
  /** The gateway's own random id. The client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** The ledger account that opened the session. No other account may use it. */
  readonly account: string;
  /** As in TaskOwner. Absent in sessions that older gateways stored: these belong to the whole account. */
  readonly within?: string | null;
}

/** A session while one request or stream uses it. */
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
   * Runs `make` with room for one session. `make` stores its session with `keep`. Resolves to null if the account has
   * its maximum of sessions and all are in use.
   */
  open<T>(account: string, make: (keep: (session: S) => Promise<void>) => Promise<T>): Promise<T | null>;
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
  /** The number of sessions in this gateway's memory. */
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

export interface KeptSessionsOptions<S extends KeptSession> extends KeptSessionsDeps {
  /** The kind of these sessions in the store. */
  readonly kind: string;
  /** The stored state of a session, as text. */
  readonly toState: (session: S) => string;
  /** null for a session that cannot continue. */
  readonly fromState: (row: StoredSession) => S | null;
  /** The part of a session that a request may change, as text. A change of it is stored. Default: nothing. */
  readonly changeable?: (session: S) => string;
  /** Called with a session that was ended to make room for another of its account. */
  readonly onEvicted?: (row: StoredSession) => void;
  /** Called with the sessions that a sweep has ended. */
  readonly onSwept?: (rows: readonly StoredSession[]) => Promise<void> | void;
}

/** An id that nobody can guess. */
export const newSessionId = (): string => randomBytes(32).toString('base64url');

const ID = /^[\w-]{43}$/;
const TOUCH_MS = 60_000;
/** Most sessions that one sweep ends. */
const SWEPT_MAX = 1_000;

export function createKeptSessions<S extends KeptSession>(options: KeptSessionsOptions<S>): KeptSessions<S> {
  const { kind, store, toState, changeable = () => '', onEvicted, onSwept, now } = options;
  const { sessionsMax, sessionsInMemoryMax: max, sessionIdleMs } = options.config;
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late. It learns of a long use only at the next sweep.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const live = createLiveSessions<S>({ ...options, max, changeable, expiryOf, touchMs });
  /** The number of sessions that are being opened, by account. */
  const opening = createCounter();

  /** Whether one more session may be opened. If needed, a session that was idle for a while is ended to make room. */
  async function hasRoom(account: string): Promise<boolean> {
    if ((await store.countOf(account, kind)) + opening.of(account) <= sessionsMax) return true;
    const oldest = await store.takeOldest(account, kind, expiryOf(now() - 2 * touchMs));
    if (oldest === null) return false;
    void live.drop(oldest.id);
    onEvicted?.(oldest);
    return true;
  }

  const open: KeptSessions<S>['open'] = async (account, make) => {
    opening.add(account, 1);
    try {
      if (!(await hasRoom(account))) return null;
      return await make(async (session) => {
        await store.put({ id: session.id, account, kind, state: toState(session), expiresAt: expiryOf(now()) });
        live.add(session, now());
      });
    } finally {
      opening.add(account, -1);
    }
  };

  const enter: KeptSessions<S>['enter'] = async (id, owner, fits = () => true) => {
    const found = ID.test(id) ? await live.find(id, owner.account) : null;
    const used =
      found &&
      (await live.enter(
        found,
        (session) => sees({ account: session.account, within: session.within ?? null }, owner) && fits(session),
      ));
    if (!used) return null;
    return { session: used.session, ended: used.ended.signal, leave: () => live.leave(used) };
  };

  return {
    open,
    add: (given) =>
      open(given.account, async (keep) => {
        const session = { id: newSessionId(), ...given } as unknown as S;
        await keep(session);
        return session;
      }),
    enter,
    async end(id, owner, fits) {
      const use = await enter(id, owner, fits);
      if (use === null) return null;
      use.leave();
      const ended = await store.delete(id);
      const unused = live.drop(id);
      return ended ? { session: use.session, unused } : null;
    },
    drop: (id) => void live.drop(id),
    async sweep(limit = SWEPT_MAX) {
      await live.sweep(now() - sessionIdleMs);
      const rows = await store.sweep(kind, limit);
      for (const { id } of rows) void live.drop(id);
      await onSwept?.(rows);
      return rows.length;
    },
    count: () => live.size,
    close: live.clear,
  };
}

import { randomBytes } from 'node:crypto';
import type { Config } from '#config';
import { createTally } from '#gateway';
import type { SessionStore, StoredSession } from '#tasks';
import { createLiveSessions } from './live-sessions.ts';

/** The members of every session of a client. */
export interface KeptSession {
  /** Ours, random: the client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** Ledger account that opened the session; no other may use it. */
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
  /** Opens a session as it is given, under a new id; null as `open`. */
  add(session: Omit<S, 'id'>): Promise<S | null>;
  /**
   * Takes a session for one request or stream; null where the account has no such session, or not one that `fits`.
   */
  enter(id: string, account: string, fits?: (session: S) => boolean): Promise<KeptUse<S> | null>;
  /** Ends a session in the database and here; null where `enter` would give null, or it has ended already. */
  end(id: string, account: string, fits?: (session: S) => boolean): Promise<S | null>;
  /** Ends here a session that has ended elsewhere. */
  drop(id: string): void;
  /**
   * Ends the sessions whose time is over, of any gateway, at most `limit`; returns how many. Keeps those alive that
   * run something here. Called every few seconds, done or not.
   */
  sweep(limit?: number): Promise<number>;
  /** How many are in the memory of this gateway. */
  count(): number;
  /** Forgets the sessions in memory. Any gateway can go on with what the database has. */
  close(): void;
}

export interface KeptSessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  readonly now: () => number;
  /** Told of changes that could not be stored. The session goes on. */
  readonly onError: (error: unknown) => void;
}

export interface KeptSessionsOptions<S extends KeptSession> extends KeptSessionsDeps {
  /** The kind of these sessions in the store. */
  readonly kind: string;
  /** The stored state of a session, as text. */
  readonly toState: (session: S) => string;
  /** null for a session that cannot go on. */
  readonly fromState: (row: StoredSession) => S | null;
  /** The part of a session that a request may change, as text: a change of it is stored. Default: nothing. */
  readonly changeable?: (session: S) => string;
  /** Told of a session that made room for another of its account. */
  readonly onEvicted?: (row: StoredSession) => void;
  /** Told of the sessions that a sweep has ended. */
  readonly onSwept?: (rows: readonly StoredSession[]) => Promise<void> | void;
}

/** An id that nobody can guess. */
export const newSessionId = (): string => randomBytes(32).toString('base64url');

const ID = /^[\w-]{43}$/;
const TOUCH_MS = 60_000;
/** Sessions that one sweep ends. */
const SWEPT_MAX = 1_000;

export function createKeptSessions<S extends KeptSession>(options: KeptSessionsOptions<S>): KeptSessions<S> {
  const { kind, store, toState, changeable = () => '', onEvicted, onSwept, now } = options;
  const { sessionsMax, sessionsInMemoryMax: max, sessionIdleMs } = options.config;
  const touchMs = Math.min(TOUCH_MS, sessionIdleMs / 4);
  // The store learns of a use up to `touchMs` late, and of one that goes on with the next sweep only.
  const expiryOf = (usedAt: number) => Math.ceil(usedAt + sessionIdleMs + 2 * touchMs);
  const live = createLiveSessions<S>({ ...options, max, changeable, expiryOf, touchMs });
  /** Sessions that are being opened, by account. */
  const opening = createTally();

  /** Whether one more may be opened. A session that nobody used for a while makes room. */
  async function hasRoom(account: string): Promise<boolean> {
    if ((await store.countOf(account, kind)) + opening.of(account) <= sessionsMax) return true;
    const oldest = await store.takeOldest(account, kind, expiryOf(now() - 2 * touchMs));
    if (oldest === null) return false;
    live.drop(oldest.id);
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

  const enter: KeptSessions<S>['enter'] = async (id, account, fits = () => true) => {
    const found = ID.test(id) ? await live.find(id, account) : null;
    const used = found && (await live.enter(found, fits));
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
    async end(id, account, fits) {
      const use = await enter(id, account, fits);
      if (use === null) return null;
      use.leave();
      const ended = await store.delete(id);
      live.drop(id);
      return ended ? use.session : null;
    },
    drop: live.drop,
    async sweep(limit = SWEPT_MAX) {
      await live.sweep(now() - sessionIdleMs);
      const rows = await store.sweep(kind, limit);
      for (const { id } of rows) live.drop(id);
      await onSwept?.(rows);
      return rows.length;
    },
    count: () => live.size,
    close: live.clear,
  };
}

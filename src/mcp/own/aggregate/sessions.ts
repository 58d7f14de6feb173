import type { Config } from '#config';
import type { SessionStore, StoredSession } from '#tasks';
import { createKeptSessions, type KeptUse, newSessionId } from '../../sessions/kept-sessions.ts';
import { AGGREGATE_KIND, fromState, toState, type AggregateSession } from './session.ts';

/**
 * The sessions of legacy clients with all services: in memory where they are used, in the database so that any
 * gateway can go on with them.
 */
export interface AggregateSessions {
  /** null where the account has as many as it may, all of them in use. Rejects with the store's error. */
  open(
    told: Pick<AggregateSession, 'account' | 'revision' | 'initialize' | 'selection'>,
  ): Promise<AggregateSession | null>;
  /** Takes a session for one request or stream; null, whatever the reason, where this account has no such session. */
  enter(id: string, account: string): Promise<AggregateUse | null>;
  /**
   * Changes a session as it is now, also by other gateways. False where it has ended. Rejects with the store's error.
   */
  change(session: AggregateSession, apply?: () => void): Promise<boolean>;
  /** Ends a session with its parts. False where `enter` would give null. */
  end(id: string, account: string): Promise<boolean>;
  /**
   * Ends those whose time is over, of any gateway; returns how many. Keeps those alive that run something here.
   * Called every few seconds.
   */
  sweep(limit?: number): Promise<number>;
  /** In the memory of this gateway. */
  readonly count: number;
  /** Forgets everything here; what the database has can be gone on with. */
  close(): void;
}

export type AggregateUse = KeptUse<AggregateSession>;

export interface AggregateSessionsDeps {
  readonly store: SessionStore;
  readonly config: Pick<Config['mcp'], 'sessionsMax' | 'sessionsInMemoryMax' | 'sessionIdleMs'>;
  /** Ends the parts of a session that is over. Never rejects. */
  readonly endParts: (session: AggregateSession) => Promise<void>;
  readonly now: () => number;
  /** Told of what could not be kept. The session goes on. */
  readonly onError: (error: unknown) => void;
}

export function createAggregateSessions({ store, endParts, ...options }: AggregateSessionsDeps): AggregateSessions {
  const over = (row: StoredSession) => void endParts(fromState(row));
  const kept = createKeptSessions<AggregateSession>({
    ...options,
    store,
    kind: AGGREGATE_KIND,
    toState,
    fromState,
    onEvicted: over,
  });
  /** The last change of each session: the next one is on what it left. */
  const changing = new WeakMap<AggregateSession, Promise<unknown>>();

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
    kept.drop(session.id);
    return false;
  }

  return {
    open: (told) =>
      kept.open(told.account, async (keep) => {
        const session: AggregateSession = { id: newSessionId(), ...told, logLevel: null, parts: new Map() };
        await keep(session);
        return session;
      }),
    enter: (id, account) => kept.enter(id, account),
    change(session, apply) {
      const next = (changing.get(session) ?? Promise.resolve()).then(() => change(session, apply));
      changing.set(
        session,
        next.catch(() => {}),
      );
      return next;
    },
    async end(id, account) {
      const use = await kept.enter(id, account);
      if (use === null) return false;
      use.leave();
      const known = await store.get(id);
      const ended = await kept.remove(id);
      if (ended) await endParts(known ? fromState(known) : use.session);
      return ended;
    },
    async sweep(limit = 1_000) {
      const rows = await kept.sweep(limit);
      for (const row of rows) over(row);
      return rows.length;
    },
    get count() {
      return kept.count;
    },
    close: kept.close,
  };
}

import type { StoredSession, TaskOwner } from '#tasks';
import {
  createKeptSessions,
  type KeptSessions,
  type KeptSessionsDeps,
  type KeptUse,
} from '../../sessions/kept-sessions.ts';
import { AGGREGATE_KIND, fromState, toState, type AggregateSession } from './session.ts';

/** The sessions of legacy clients with all services. */
export interface AggregateSessions extends Pick<
  KeptSessions<AggregateSession>,
  'add' | 'enter' | 'sweep' | 'count' | 'close'
> {
  /**
   * Applies a change to the stored state of a session, which other gateways may have changed too. False if the session
   * has ended. Rejects with the store's error.
   */
  change(session: AggregateSession, apply?: () => void): Promise<boolean>;
  /** Ends a session with its parts. False if `enter` would give null. */
  end(id: string, owner: TaskOwner): Promise<boolean>;
}

export type AggregateUse = KeptUse<AggregateSession>;

export interface AggregateSessionsDeps extends KeptSessionsDeps {
  /** Ends the parts of a session that has ended. Never rejects. */
  readonly endParts: (session: AggregateSession) => Promise<void>;
}

export function createAggregateSessions({ store, endParts, ...options }: AggregateSessionsDeps): AggregateSessions {
  const endPartsOf = (row: StoredSession) => void endParts(fromState(row));
  const kept = createKeptSessions<AggregateSession>({
    ...options,
    store,
    kind: AGGREGATE_KIND,
    toState,
    fromState,
    onEvicted: endPartsOf,
    onSwept: (rows) => rows.forEach(endPartsOf),
  });
  /** The last change of each session. The next change waits for it. */
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
    ...kept,
    change(session, apply) {
      const next = (changing.get(session) ?? Promise.resolve()).then(() => change(session, apply));
      changing.set(
        session,
        next.catch(() => {}),
      );
      return next;
    },
    async end(id, owner) {
      const use = await kept.enter(id, owner);
      if (use === null) return false;
      use.leave();
      // The stored state, because other gateways may have opened parts.
      const stored = await store.get(id);
      if ((await kept.end(id, owner)) === null) return false;
      await endParts(stored ? fromState(stored) : use.session);
      return true;
    },
  };
}

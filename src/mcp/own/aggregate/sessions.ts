import type { TaskOwner } from '#tasks';
import type { StoredSession } from '../../request/session-store.ts';
import {
  createKeptSessions,
  type KeptSessions,
  type KeptSessionsDeps,
  type KeptUse,
} from '../../sessions/kept-sessions.ts';

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
  readonly endParts: (session: AggregateSession) => Promise<void>;
}

export function createAggregateSessions({ store, endParts, ...options }: AggregateSessionsDeps): AggregateSessions {
  const endPartsOf = (row: StoredSession) => void endParts(fromState(row));
  const sessions = createKeptSessions<AggregateSession>({
    ...options,
    store,
    kind: AGGREGATE_KIND,
    toState,
    fromState,
    onEvicted: endPartsOf,
    onSwept: (rows) => rows.forEach(endPartsOf),
  });
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
    sessions.drop(session.id);
    return false;
  }

  return {
    ...sessions,
    change(session, apply) {
      const next = (changing.get(session) ?? Promise.resolve()).then(() => change(session, apply));
      changing.set(
        session,
        next.catch(() => {}),
      );
      return next;
    },
    async end(id, owner) {
      const use = await sessions.enter(id, owner);
      if (use === null) return false;
      use.leave();
      // The stored state, because other gateways may have opened parts.
      const stored = await store.get(id);
      if ((await sessions.end(id, owner)) === null) return false;
      await endParts(stored ? fromState(stored) : use.session);
      return true;
    },
  };
}

/**
 * The session of one legacy client with all services. Requests for one service go through a session with that service,
 * which is a part of this session.
 */
export interface AggregateSession {
  readonly id: string;
  readonly account: string;
  readonly within?: string | null;
  readonly revision: string;
  /** The client's `initialize` message, unchanged. The parts are opened with it too. */
  readonly initialize: string;
  readonly selection: string | null;
  /** Set by `logging/setLevel`, for all parts. */
  logLevel: string | null;
  /**
   * Ids of the sessions with single services, by service, in the order in which they were opened. Such a session may
   * have ended. Then it is opened again.
   */
  parts: Map<string, string>;
}

const AGGREGATE_KIND = 'mcp-all';

interface StoredAggregate extends Pick<
  AggregateSession,
  'within' | 'revision' | 'initialize' | 'selection' | 'logLevel'
> {
  readonly parts: Readonly<Record<string, string>>;
}

function toState({ within = null, revision, initialize, selection, logLevel, parts }: AggregateSession): string {
  return JSON.stringify({
    within,
    revision,
    initialize,
    selection,
    logLevel,
    parts: Object.fromEntries(parts),
  } satisfies StoredAggregate);
}

function fromState({ id, account, state }: Pick<StoredSession, 'id' | 'account' | 'state'>): AggregateSession {
  const { parts, ...rest } = JSON.parse(state) as StoredAggregate;
  return { id, account, ...rest, parts: new Map(Object.entries(parts)) };
}

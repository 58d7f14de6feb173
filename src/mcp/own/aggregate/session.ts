import type { StoredSession } from '#tasks';

/**
 * The session of one legacy client with all services. Requests for one service go through a session with that
 * service, a part of this one.
 */
export interface AggregateSession {
  /** Ours, random: the client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** Ledger account that opened the session; no other may use it. */
  readonly account: string;
  /** Revision that was agreed on with the client. */
  readonly revision: string;
  /** The client's `initialize` message as it came: that of its parts. */
  readonly initialize: string;
  /** The services that its address names; null is all. */
  readonly selection: string | null;
  /** Set by `logging/setLevel`, for all parts. */
  logLevel: string | null;
  /**
   * Ids of the sessions with single services, by the service, in the order in which they were opened. One of them
   * may have ended: then it is opened anew.
   */
  parts: Map<string, string>;
}

/** The kind of these sessions in the store. */
export const AGGREGATE_KIND = 'mcp-all';

interface State extends Pick<AggregateSession, 'revision' | 'initialize' | 'selection' | 'logLevel'> {
  readonly parts: Readonly<Record<string, string>>;
}

/** The stored state of a session, as text. */
export function toState({ revision, initialize, selection, logLevel, parts }: AggregateSession): string {
  return JSON.stringify({
    revision,
    initialize,
    selection,
    logLevel,
    parts: Object.fromEntries(parts),
  } satisfies State);
}

export function fromState({ id, account, state }: Pick<StoredSession, 'id' | 'account' | 'state'>): AggregateSession {
  const { revision, initialize, selection, logLevel, parts } = JSON.parse(state) as State;
  return { id, account, revision, initialize, selection, logLevel, parts: new Map(Object.entries(parts)) };
}

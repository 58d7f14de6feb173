import type { StoredSession } from '#tasks';

/**
 * The session of one legacy client with all services. Requests for one service go through a session with that service,
 * which is a part of this session.
 */
export interface AggregateSession {
  /** The gateway's own random id. The client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** The ledger account that opened the session. No other account may use it. */
  readonly account: string;
  /** As in TaskOwner. Absent in sessions that older gateways stored: these belong to the whole account. */
  readonly within?: string | null;
  /** The revision that was agreed on with the client. */
  readonly revision: string;
  /** The client's `initialize` message, unchanged. The parts are opened with it too. */
  readonly initialize: string;
  /** The services that its address names; null for all. */
  readonly selection: string | null;
  /** Set by `logging/setLevel`, for all parts. */
  logLevel: string | null;
  /**
   * Ids of the sessions with single services, by service, in the order in which they were opened. Such a session may
   * have ended. Then it is opened again.
   */
  parts: Map<string, string>;
}

/** The kind of these sessions in the store. */
export const AGGREGATE_KIND = 'mcp-all';

interface State extends Pick<AggregateSession, 'within' | 'revision' | 'initialize' | 'selection' | 'logLevel'> {
  readonly parts: Readonly<Record<string, string>>;
}

/** The stored state of a session, as text. */
export function toState({ within = null, revision, initialize, selection, logLevel, parts }: AggregateSession): string {
  return JSON.stringify({
    within,
    revision,
    initialize,
    selection,
    logLevel,
    parts: Object.fromEntries(parts),
  } satisfies State);
}

export function fromState({ id, account, state }: Pick<StoredSession, 'id' | 'account' | 'state'>): AggregateSession {
  const { parts, ...kept } = JSON.parse(state) as State;
  return { id, account, ...kept, parts: new Map(Object.entries(parts)) };
}

import { errorText } from '#wire';
import type { Offer } from '#gateway';
import { ERROR } from '../wire/revisions.ts';
import type { Era, McpTail } from './mcp-request.ts';

/**
 * The session of one legacy client with one service. It lasts from `initialize` to DELETE, or until it was idle too
 * long. Never shared between callers.
 */
export interface LegacySession {
  /** The gateway's own random id. The client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** The ledger account that opened the session. No other account may use it. */
  readonly account: string;
  /** As in TaskOwner. Absent in sessions that older gateways stored: these belong to the whole account. */
  readonly within?: string | null;
  readonly service: string;
  /** The one offer that serves the session. It is replaced when its provider registers it again. */
  offer: Offer;
  /**
   * The server's era when the session was opened. If the server changes its era, only later sessions use the new one.
   */
  readonly era: Era;
  /** Time of its `initialize`, in epoch milliseconds. */
  readonly openedAt: number;
  /** The revision that was agreed on with the client. */
  readonly revision: string;
  /** The client's `initialize` message, unchanged. */
  readonly initialize: string;
  readonly clientCapabilities: Readonly<Record<string, unknown>>;
  /**
   * The session id at a legacy server. Null if the server gave none, and for a modern server. Changes if the server
   * lost the session.
   */
  upstreamId: string | null;
  /** The level that the client set with `logging/setLevel`, kept if the server is modern. */
  logLevel: string | null;
}

/** Code of the error for an unknown session. */
const SESSION_NOT_FOUND = -32_001;

/** The answer to a batch without a session. Only revision 2025-03-26 has batches, and only in sessions. */
export const BATCH_OUTSIDE: McpTail = {
  status: 400,
  text: errorText('null', {
    code: ERROR.server,
    message:
      'A batch needs the Mcp-Session-Id header of its session. Without one, send its messages one by one, or the batch to /api/v1/rpc',
  }),
};

/**
 * The answer to every id that is not a session of this caller with this service: unknown, ended, or another caller's.
 */
export const NO_SESSION: McpTail = {
  status: 404,
  text: errorText('null', { code: SESSION_NOT_FOUND, message: 'Session not found: send initialize to open one' }),
};

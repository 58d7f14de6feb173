import { errorText } from '#wire';
import type { Offer } from '#gateway';
import { ERROR } from '../wire/revisions.ts';
import type { Era, McpTail } from './turn.ts';

/**
 * The session of one legacy client with one service, from its `initialize` to its DELETE or the end of its idle
 * time. Never shared between callers.
 */
export interface LegacySession {
  /** Ours, random: the client sends it as `Mcp-Session-Id`. */
  readonly id: string;
  /** Ledger account that opened the session; no other may use it. */
  readonly account: string;
  readonly service: string;
  /** The one offer that serves it; replaced when its provider registers it anew. */
  offer: Offer;
  /** The server's era when the session was opened. Another era that it learns is for later sessions. */
  readonly era: Era;
  /** Epoch milliseconds of its `initialize`. */
  readonly openedAt: number;
  /** Revision that was agreed on with the client. */
  readonly revision: string;
  /** The client's `initialize` message, as it came. */
  readonly initialize: string;
  readonly clientCapabilities: Readonly<Record<string, unknown>>;
  /**
   * Session id at a legacy server; null where it gave none, and for a modern server. Changes when the server lost it.
   */
  upstreamId: string | null;
  /** Set by `logging/setLevel` where the server is modern. */
  logLevel: string | null;
}

/** Code of the error for an unknown session. */
const SESSION_NOT_FOUND = -32_001;

/**
 * The answer to a batch without a session: the revision 2025-03-26, which has batches, has them in sessions alone.
 */
export const BATCH_OUTSIDE: McpTail = {
  status: 400,
  text: errorText('null', {
    code: ERROR.server,
    message:
      'A batch needs the Mcp-Session-Id header of its session. Without one, send its messages one by one, or the batch to /api/v1/rpc',
  }),
};

/** The answer to every id that is not a session of this caller with this service: unknown, ended, another's. */
export const NO_SESSION: McpTail = {
  status: 404,
  text: errorText('null', { code: SESSION_NOT_FOUND, message: 'Session not found: send initialize to open one' }),
};

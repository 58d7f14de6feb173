// One request of a client and everything that belongs to it on its way: its session, the server's facts, the
// translator's surroundings, and the response with its events.

import { type LargeStrings, eventText, isObject } from '#wire';
import {
  type JsonRpcMessage,
  type RequestMessage,
  type ResponseMessage,
  errorText,
  type Marker,
  type Received,
} from '#json-rpc';
import type { CancelSignal } from '#billing/amounts';
import type { Caller } from '#accounts';
import type { Offer } from '#catalog';
import type { CostCap, ReplyEnd, RequestedQuote, Send } from '#call';
import type { PaymentAttempt } from '#payments';
import { ERROR, type Era, type MethodRule } from '../wire/revisions.ts';

/** One request of a client on its way to one server and back, with all that the gateway has read of it. */
export interface McpRequest {
  /** The message as the client sent it. Through the aggregate, with the names that the server knows. */
  readonly message: RequestMessage;
  /** How the client speaks: `bare` posts single requests without envelope and session. */
  readonly client: 'modern' | 'legacy' | 'bare';
  readonly caller: Caller;
  readonly requestId: string;
  /** Id of its call; empty before the call is made. */
  callId: string;
  readonly service: string;
  /**
   * The name that `prepare` resolves: of the service, or the pinned form of one offer. Two requests are the same if
   * this name, the method and the arguments are equal.
   */
  readonly target: string;
  readonly rule: MethodRule;
  /** The W3C trace that it belongs to; null for none. */
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  readonly idempotencyKey: string | null;
  /** The most that a billed call may cost; null for no bound. */
  readonly cap: CostCap | null;
  /** The quote that a billed call is charged by; null for none. */
  readonly quote: RequestedQuote | null;
  readonly payment: PaymentAttempt | null;
  /**
   * Its answer to the gateway's question to open the page of a decision. `accept`: the client has opened it; `decline`:
   * it has not; null without an answer.
   */
  readonly elicitationAction: 'accept' | 'decline' | null;
  /**
   * The client accepts an event stream. If not, notifications are dropped, and requests of the server to the client are
   * refused.
   */
  readonly events: boolean;
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The `Mcp-Param-*` headers of the request, in lower case. Null if the gateway makes them from the arguments. */
  readonly paramHeaders: Readonly<Record<string, string>> | null;
  /** The session of a legacy client; null for others. */
  readonly session: LegacySession | null;
  /** The opened `requestState`, if this request continues an earlier one; null for a first request. */
  readonly continued: Continued | null;
  /** Changes a message for the client (names and URIs of the aggregate). Elsewhere it returns the same text. */
  readonly toClient: (text: string) => string;
  /**
   * Aborts when the client leaves, which cancels a request of 2026-07-28. Absent if nothing may be cancelled: the
   * outcome is kept for a repeat.
   */
  clientGone?: CancelSignal;
}

/** The members of a request that are for the gateway itself, and the message without them. */
export interface OwnMeta extends Pick<
  McpRequest,
  'message' | 'wantsReceipt' | 'idempotencyKey' | 'cap' | 'quote' | 'elicitationAction'
> {
  readonly payment: unknown;
}

/** The content of a `requestState` that the gateway sealed. */
export interface Continued {
  /** Id of the pending call. The request that continues it takes over its lock. */
  readonly callId: string;
  readonly offerId: string;
  /** Id of the price at which the call began. The call continues at no other price. */
  readonly price: string;
  /** The server's own `requestState` if it is modern; null if it gave none. */
  readonly state: string | null;
  /** Id of the held call at a legacy server; null for a modern server. */
  readonly held: string | null;
  /** When the first round was sent, in epoch milliseconds. Absent in states that an earlier version sealed. */
  readonly askedAt?: number;
}

/** The server of one offer in one era, as it describes itself. */
export interface ServerFacts {
  readonly era: Era;
  /** The newest revision that both the server and the gateway know. */
  readonly revision: string;
  /** The server has neither `server/discover` nor `initialize`: it has no sessions, and answers only bare requests. */
  readonly bare: boolean;
  /** Its `server/discover` or `initialize` result, as unchanged JSON text. */
  readonly text: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** The surroundings that a translator works in. */
export interface ServerPlace {
  readonly offer: Offer;
  readonly facts: ServerFacts;
  readonly send: Send;
  /** Sends requests that may outlive the call. The sender must end them. */
  readonly detached: Send;
  /** Aborts when nobody waits for the call any more. */
  readonly signal: AbortSignal;
  /** When the first round of the call was sent, in epoch milliseconds. Absent if nothing is charged. */
  readonly askedAt?: number;
}

/**
 * Takes a request to a server and its answer back: unchanged if both speak the same era, else through a translation.
 * Yields whole server-sent events for the client, as bytes. Throws UpstreamFailure.
 */
export type EraTranslator = (
  mcpRequest: McpRequest,
  place: ServerPlace,
) => AsyncGenerator<Uint8Array, McpEnd, undefined>;

/** How an attempt ends. Its result is the response for the client; null without one. */
export type McpEnd = ReplyEnd<McpResponse> | ReplyEnd<null>;

/** The response. It is written to the client once the call has settled. */
export interface McpResponse {
  /** The whole JSON-RPC message, with the client's id. */
  readonly text: string;
  /** The large strings that `text` has only marks of. Absent if there are no such strings. */
  readonly large?: LargeStrings;
  /** HTTP status, used if nothing was written before. */
  readonly status: number;
  /** Id of the event in which a legacy server sent it. A client can resume the stream with it. */
  readonly eventId?: string | null;
  /** The answer names a task. The cost of the call is known only when the task ends. */
  readonly pending?: true;
  /** The parsed response, so that `text` is not parsed again if it is unchanged. */
  readonly message?: ResponseMessage;
}

/**
 * The session of one legacy client with one service. It lasts from `initialize` to DELETE, or until it was idle too
 * long. Never shared between callers.
 */
export interface LegacySession {
  readonly id: string;
  readonly account: string;
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

/** The answer to a batch without a session. Only revision 2025-03-26 has batches, and only in sessions. */
export const BATCH_OUTSIDE: McpResponse = {
  status: 400,
  text: errorText('null', {
    code: ERROR.server,
    message:
      'A batch needs the Mcp-Session-Id header of its session. Without one, send its messages one by one, or the batch to /api/v1/rpc',
  }),
};

/**
 * The answer to every session id that is not a session of this caller with this service: unknown, ended, or another
 * caller's. `idText`: the id of the request that named it.
 */
export const noSession = (idText: string): McpResponse => ({
  status: 404,
  text: errorText(idText, { code: ERROR.noSession, message: 'Session not found: send initialize to open one' }),
});

/** The same to what has no id: a notification, a batch, GET and DELETE. */
export const NO_SESSION: McpResponse = noSession('null');

export const eventBytes = (text: string): Uint8Array => Buffer.from(eventText(text));

/** Begins a stream that a client listens on, so that the client gets the response headers before the first event. */
export const LISTENING: Uint8Array = Buffer.from(': listening\n\n');

/** The bytes of a server's event for the client: the server's own bytes, unless the request changes messages. */
export function toEvent(
  { toClient }: Pick<McpRequest, 'toClient'>,
  { message, raw, eventId }: Received | Marker,
): Uint8Array {
  if (message === null) return Buffer.from(raw);
  const text = toClient(message.text);
  return Buffer.from(raw !== null && text === message.text ? raw : eventText(text, eventId));
}

/**
 * Whether a message of a server is progress for a token that the client did not send with this request. Some servers
 * make one up, and some clients end their session at it.
 */
export function isUnaskedProgress({ message: { params } }: McpRequest, message: JsonRpcMessage | null): boolean {
  if (message?.kind !== 'notification' || message.method !== 'notifications/progress') return false;
  const meta = params?.['_meta'];
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  return token === undefined || message.params?.['progressToken'] !== token;
}

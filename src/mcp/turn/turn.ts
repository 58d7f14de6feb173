import type { LargeStrings, RequestMessage, ResponseMessage } from '#wire';
import type { Caller, Offer, ReplyEnd, Send } from '#gateway';
import type { LegacySession } from './session.ts';

/** One request of a client on its way to one server and back. */
export interface Turn {
  /** As the client sent it; through the aggregate, with the names that the server knows. */
  readonly message: RequestMessage;
  /** The client's way to speak: `bare` posts `tools/list` or `tools/call` with nothing around it. */
  readonly client: 'modern' | 'legacy' | 'bare';
  readonly caller: Caller;
  readonly callId: string;
  /** The service that was called, by its name. */
  readonly service: string;
  /** The client takes an event stream; else notifications are dropped and what a server asks of it is refused. */
  readonly events: boolean;
  /** The client's capabilities, as it declares them. */
  readonly capabilities: Readonly<Record<string, unknown>>;
  /** The `Mcp-Param-*` headers of the request, lower case; null where the gateway makes them from the arguments. */
  readonly paramHeaders: Readonly<Record<string, string>> | null;
  /** The session of a legacy client; null for others. */
  readonly session: LegacySession | null;
  /** The opened `requestState`, where this request goes on with an earlier one; null for a first request. */
  readonly continued: Continued | null;
  /** Changes a message for the client (names and URIs of the aggregate); identity elsewhere. */
  readonly toClient: (text: string) => string;
}

/** The content of a sealed `requestState` of ours. */
export interface Continued {
  /** Id of the pending call whose lock this turn takes over. */
  readonly callId: string;
  readonly offerId: string;
  /** Id of the price at which the call began. It goes on at no other. */
  readonly price: string;
  /** The server's own `requestState` where it is modern; null where it gave none. */
  readonly state: string | null;
  /** Id of the held call at a legacy server; null for a modern server. */
  readonly held: string | null;
  /** When its first round was sent; epoch milliseconds. Absent in states that an earlier version sealed. */
  readonly askedAt?: number;
}

/** `modern` has no sessions (2026-07-28), `legacy` is everything before it. */
export type Era = 'modern' | 'legacy';

/** The server of one offer in one era, as it describes itself. */
export interface ServerFacts {
  readonly era: Era;
  /** The newest revision that it speaks of those that the gateway knows. */
  readonly revision: string;
  /** It knows neither `server/discover` nor `initialize`: it has no sessions, and answers bare requests alone. */
  readonly bare: boolean;
  /** Its `server/discover` or `initialize` result, JSON text as it came. */
  readonly text: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** The surroundings of a leg. */
export interface Place {
  readonly offer: Offer;
  readonly facts: ServerFacts;
  readonly send: Send;
  /** Sends requests that may outlive the call, and are ended by their sender. */
  readonly detached: Send;
  /** Aborts when nobody waits for the call any more. */
  readonly signal: AbortSignal;
  /** When the first round of the call was sent; epoch milliseconds. Absent where nothing is charged. */
  readonly askedAt?: number;
}

/**
 * Takes a turn to a server and back: raw where both speak the same era, else through a bridge. Yields whole
 * server-sent events for the client, as bytes. Returns the end of the call with a McpTail. Throws UpstreamFailure.
 */
export type Leg = (turn: Turn, place: Place) => AsyncGenerator<Uint8Array, ReplyEnd, undefined>;

/** The response, written to the client once the call has settled. */
export interface McpTail {
  /** The whole JSON-RPC message, with the client's id. */
  readonly text: string;
  /** The strings that `text` has marks of; absent for none. */
  readonly large?: LargeStrings;
  /** HTTP status where nothing was written before. */
  readonly status: number;
  /** Id of the event that a legacy server sent it with, by which its stream can be resumed. */
  readonly eventId?: string | null;
  /** The answer names a task: the cost of the call is known when that ends. */
  readonly pending?: true;
  /** The response as it was read, so that `text` is not read again where it is the same. */
  readonly message?: ResponseMessage;
}

import { setTimeout as pause } from 'node:timers/promises';
import { eitherOf } from '#billing/amounts';
import {
  errorText,
  exactId,
  parseMessage,
  type RequestId,
  type ResponseMessage,
  resultText,
  type RequestMessage,
  readReply,
} from '#json-rpc';
import { isObject, RawJsonError, membersOf, splice, UpstreamFailure, withMembers } from '#wire';
import type { UpstreamRequest } from '#call';
import type { Offer } from '#catalog';
import { NoAnswer, type ClientRequests } from '../request/client-requests.ts';
import {
  freeEnd,
  toEnd,
  toServerEnd,
  providerFailure,
  refuseCredentialStatus,
  withoutResponse,
} from '../request/ending.ts';
import {
  createRunningRequests,
  endsCancelled,
  type RunningRequest,
  type CancelNotes,
} from '../request/cancellation.ts';
import { ERROR, levelFault } from '../wire/revisions.ts';
import {
  isUnaskedProgress,
  type LegacySession,
  type EraTranslator,
  type McpEnd,
  type ServerPlace,
  type McpRequest,
  eventBytes,
  type ServerFacts,
} from '../request/mcp-request.ts';
import { askClient, readAsked, type PendingRequest } from './input-requests.ts';
import {
  createListenModern,
  type ListenModern,
  createSubscriptions,
  type Subscriptions,
} from './legacy-to-modern-listen.ts';
import { toLegacyResponse, envelopeOf } from '../request/legacy-to-modern-text.ts';
import { MODERN_POST_HEADERS } from '../servers/legacy-server.ts';
import { withMeta } from '../wire/meta.ts';
import { standardHeaders } from '../wire/param-headers.ts';

/** The bridge from clients with sessions to servers without. */
export interface LegacyToModern {
  /**
   * Handles one request of a client. If the server asks the client for input, all rounds are one call, which ends with
   * the last round. A cancelled request ends free, with a null result.
   */
  readonly translator: EraTranslator;
  readonly listenModern: ListenModern;
  /** Takes a client's `notifications/cancelled`. False if no such request runs. */
  cancel(session: string, id: RequestId, reason?: string): boolean;
  readonly running: number;
}

export interface LegacyToModernOptions extends ServerExchangeOptions {
  readonly clientRequests: ClientRequests;
  readonly cancels?: CancelNotes;
  /** How long a tool may still answer after its call was cancelled. Such an answer is paid. Default: 0. */
  readonly cancelGraceMs?: number;
}

/** How often a server may ask for input before it answers. */
const ROUNDS_MAX = 16;
/** The pause before a request is repeated without a question to the client. */
const PACE_MS = 250;

export function createLegacyToModern(options: LegacyToModernOptions): LegacyToModern {
  const { clientRequests, replyBytesMax, cancelGraceMs = 0 } = options;
  const exchange = createServerExchange(options);
  const requests = createRunningRequests(options.cancels);
  const subscriptions = createSubscriptions();

  const translator: EraTranslator = async function* legacyToModern(mcpRequest, place) {
    const { message, session } = mcpRequest;
    if (!session) throw new Error('this bridge takes requests in sessions only');
    const own = await answerHere(message, session, place.facts, subscriptions, place.signal);
    if (own !== null) return endWith(mcpRequest, place, own);
    // Closing the stream cancels the call at a modern server. Without the grace time, a tool that acts at once and
    // answers late would not be paid for its work.
    const graceMs = message.method === 'tools/call' ? cancelGraceMs : 0;
    const running = requests.start(session.id, exactId(message), null, graceMs);
    try {
      return yield* startAttempt(mcpRequest, session, place, running);
    } catch (error) {
      if (endsCancelled(running, error)) return freeEnd(null, 'cancelled');
      throw error instanceof RawJsonError
        ? providerFailure(`the provider's answer is not MCP: ${error.message}`, null, error)
        : error;
    } finally {
      running.end();
    }
  };

  async function* startAttempt(
    mcpRequest: McpRequest,
    session: LegacySession,
    place: ServerPlace,
    { unwanted, cancelled }: RunningRequest,
  ): AsyncGenerator<Uint8Array, McpEnd, undefined> {
    const signal = eitherOf(place.signal, unwanted);
    let continued: Round['continued'] = {};
    for (let number = 1; ; number++) {
      const response = yield* exchange(mcpRequest, session, place, { number, continued }, cancelled);
      const pending = readAsked(mcpRequest.message, response);
      if (pending === null) return endOf(mcpRequest, place, response);
      if (number > ROUNDS_MAX) return refuse(mcpRequest, place, `it asked for input more than ${ROUNDS_MAX} times`);
      try {
        continued = yield* goOn(mcpRequest, session, pending, number, signal);
      } catch (error) {
        if (unwanted.aborted || !(error instanceof NoAnswer)) throw error;
        return refuse(mcpRequest, place, error.message);
      }
    }
  }

  async function* goOn(
    { callId, capabilities, events, toClient }: McpRequest,
    session: LegacySession,
    pending: PendingRequest,
    number: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, Round['continued'], undefined> {
    const state: Record<string, string> = pending.state === null ? {} : { requestState: pending.state };
    if (pending.requests.length > 0) {
      const client = { session: session.id, capabilities, events, toClient };
      return {
        inputResponses: yield* askClient(clientRequests, client, pending, `${callId}/${number}`, signal),
        ...state,
      };
    }
    await pause(PACE_MS, undefined, { signal });
    return state;
  }

  return {
    translator,
    listenModern: createListenModern({ subscriptions, replyBytesMax }),
    cancel(session, id, reason) {
      const request = requests.find(session, id);
      request?.cancel(reason);
      return request !== undefined;
    },
    get running() {
      return requests.count;
    },
  };
}

/** The status is always 200, because a legacy client takes any other status for a broken connection. */
function endOf(mcpRequest: McpRequest, place: ServerPlace, response: ResponseMessage): McpEnd {
  const { message, toClient } = mcpRequest;
  const type = isObject(response.result) ? response.result['resultType'] : undefined;
  if (type !== undefined && type !== 'complete') {
    const text = `The server answered with a result of the type ${JSON.stringify(type)}, which a client with a session does not support`;
    return endWith(mcpRequest, place, errorText(message.idText, { code: ERROR.internal, message: text }));
  }
  const toAnswer = (read: ResponseMessage) => ({ text: toClient(toLegacyResponse(message, read)), status: 200 });
  return toServerEnd(mcpRequest, place, response, toAnswer);
}

const endWith = ({ message }: McpRequest, { offer }: ServerPlace, text: string): McpEnd =>
  toEnd(message, offer, parseMessage(text) as ResponseMessage, { text, status: 200 });

/**
 * Refuses a call for which the client could not give the input. For a tool call this is a result, because the model
 * reads it. Else it is an error.
 */
function refuse(mcpRequest: McpRequest, place: ServerPlace, why: string): McpEnd {
  const { method, idText } = mcpRequest.message;
  const text = `${method} needs input and cannot continue: ${why}`;
  if (method !== 'tools/call')
    return endWith(mcpRequest, place, errorText(idText, { code: ERROR.internal, message: text }));
  return endWith(
    mcpRequest,
    place,
    resultText(idText, JSON.stringify({ content: [{ type: 'text', text }], isError: true })),
  );
}

interface ServerExchangeOptions {
  readonly schemaOf: (offer: Offer, tool: string) => unknown;
  readonly replyBytesMax: number;
}

/** One of the requests to a server that together serve one request of a client. */
interface Round {
  readonly number: number;
  /** Members of `params` that continue the previous round: JSON text by key. */
  readonly continued: Readonly<Record<string, string>>;
}

/**
 * Sends one round to the server. Yields the server's notifications as events, and returns its response. Throws
 * UpstreamFailure. If `cancelled` aborts, closes the stream, which cancels at a modern server, and throws the reason.
 */
type ServerExchange = (
  mcpRequest: McpRequest,
  session: LegacySession,
  place: ServerPlace,
  round: Round,
  cancelled: AbortSignal,
) => AsyncGenerator<Uint8Array, ResponseMessage, undefined>;

function createServerExchange({ schemaOf, replyBytesMax }: ServerExchangeOptions): ServerExchange {
  return async function* exchange(mcpRequest, session, { offer, send }, round, cancelled) {
    cancelled.throwIfAborted();
    const id = `${mcpRequest.callId}.${round.number}`;
    const sent = send(requestOf(mcpRequest, session, offer, id, round));
    const abort = () => sent.abort(cancelled.reason as Error);
    cancelled.addEventListener('abort', abort, { once: true });
    try {
      const reply = await sent.head;
      await refuseCredentialStatus(reply);
      for await (const { message } of readReply(reply, replyBytesMax)) {
        if (message?.kind === 'response' && (message.id === id || (message.id === null && message.error))) {
          reply.discard();
          return message;
        }
        if (isUnaskedProgress(mcpRequest, message)) continue;
        // A server's `notifications/cancelled` has an id that the client does not know, so it is dropped.
        if (message?.kind === 'notification' && mcpRequest.events && message.method !== 'notifications/cancelled')
          yield eventBytes(mcpRequest.toClient(message.text));
      }
      throw withoutResponse(null);
    } catch (error) {
      throw error instanceof UpstreamFailure && error.retryable && !mayRetry(mcpRequest, round, error)
        ? providerFailure(error.message, error.status, error)
        : error;
    } finally {
      cancelled.removeEventListener('abort', abort);
    }
  };

  /**
   * The client's message with a new id that is unique over all clients. The clients' own ids are not, because they all
   * begin at 0.
   */
  function requestOf(
    mcpRequest: McpRequest,
    session: LegacySession,
    offer: Offer,
    id: string,
    { continued, number }: Round,
  ): UpstreamRequest {
    const { method, params, text } = mcpRequest.message;
    const enveloped = withMeta(text, 'params', envelopeOf(session, mcpRequest.events));
    const members = membersOf(enveloped);
    const { start, end } = members.get('id')!;
    const body = splice(enveloped, [
      { start, end, text: JSON.stringify(id) },
      withMembers(enveloped, members.get('params')!, continued),
    ]);
    const schema = method === 'tools/call' ? schemaOf(offer, String(params?.['name'])) : null;
    return {
      method: 'POST',
      path: '',
      headers: {
        ...MODERN_POST_HEADERS,
        'x-request-id': mcpRequest.callId,
        ...standardHeaders(method, params, schema),
      },
      body,
      // A server may take the state of a round once.
      ...(number === 1 ? {} : { repeatable: false }),
    };
  }
}

/**
 * No retry for a tool that was reached, because it may have acted. No retry of a later round, because another server
 * does not have the state of the earlier rounds.
 */
function mayRetry({ message }: McpRequest, { number }: Round, { unsent }: UpstreamFailure): boolean {
  return number === 1 && (unsent || message.method !== 'tools/call');
}

/** The longest time that the answer to a subscription waits until the server uses the new list. */
const SETTLE_MS = 5_000;

/** Answers a request that the modern revision does not have, as JSON text. Null if the server must be asked. */
async function answerHere(
  { method, params, idText }: RequestMessage,
  session: LegacySession,
  facts: ServerFacts,
  subscriptions: Subscriptions,
  signal: AbortSignal,
): Promise<string | null> {
  const done = resultText(idText, '{}');
  const refuse = (code: number, message: string) => errorText(idText, { code, message });
  switch (method) {
    case 'ping':
      return done;
    case 'logging/setLevel': {
      const level = params?.['level'];
      const fault = levelFault(level);
      if (fault !== null) return refuse(ERROR.invalidParams, `level ${fault}`);
      session.logLevel = level as string;
      return done;
    }
    case 'resources/subscribe':
    case 'resources/unsubscribe': {
      const { resources } = facts.capabilities as { readonly resources?: { readonly subscribe?: unknown } | null };
      if (resources?.subscribe !== true)
        return refuse(ERROR.methodNotFound, 'The server offers no subscriptions to resources');
      const uri = params?.['uri'];
      if (typeof uri !== 'string') return refuse(ERROR.invalidParams, 'uri must be a string');
      if (method === 'resources/unsubscribe') subscriptions.remove(session, uri);
      else if (!subscriptions.add(session, uri))
        return refuse(ERROR.invalidParams, 'This session subscribes to too many resources');
      await subscriptions.settled(session, AbortSignal.any([signal, AbortSignal.timeout(SETTLE_MS)]));
      return done;
    }
    default:
      return null;
  }
}

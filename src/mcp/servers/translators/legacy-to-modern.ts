import { eitherOf } from '#billing/amounts';
import { setTimeout as pause } from 'node:timers/promises';
import {
  errorText,
  exactId,
  isObject,
  parseMessage,
  RawJsonError,
  type RequestId,
  type ResponseMessage,
  resultText,
} from '#wire';
import type { ReplyEnd } from '#gateway';
import { NoAnswer, type ClientRequests } from '../../request/client-requests.ts';
import { freeEnd, toEnd } from '../../request/ending.ts';
import { providerFailure } from '../../request/provider-failure.ts';
import { createRunningRequests, endsCancelled, type Running } from '../../request/running-requests.ts';
import { ERROR } from '../../wire/revisions.ts';
import type { CancelNotes } from '../../sessions/cancel-notes.ts';
import type { LegacySession } from '../../request/session.ts';
import type { EraTranslator, McpTail, Place, McpRequest } from '../../request/mcp-request.ts';
import { askClient } from './legacy-to-modern/ask-client.ts';
import { readAsked, type PendingRequest } from './legacy-to-modern/input-requests.ts';
import { createListenModern, type ListenModern } from './legacy-to-modern/listen-modern.ts';
import { answerHere } from './legacy-to-modern/own-answers.ts';
import { createServerExchange, type Round, type ServerExchangeOptions } from './legacy-to-modern/server-exchange.ts';
import { createSubscriptions } from './legacy-to-modern/subscriptions.ts';
import { toLegacyResponse } from './legacy-to-modern/to-legacy.ts';

/** The bridge from clients with sessions to servers without. */
export interface LegacyToModern {
  /**
   * Handles one request of a client. If the server asks the client for input, all rounds are one call, which ends with
   * the last round. A cancelled request ends free, with a null tail.
   */
  readonly translator: EraTranslator;
  readonly listenModern: ListenModern;
  /** Takes a client's `notifications/cancelled`. False if no such request runs. */
  cancel(session: string, id: RequestId, reason?: string): boolean;
  /** The number of running requests. */
  readonly running: number;
}

export interface LegacyToModernOptions extends ServerExchangeOptions {
  readonly clientRequests: ClientRequests;
  /** Tells of cancellations that reach another gateway. Default: none. */
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
    place: Place,
    { unwanted, cancelled }: Running,
  ): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    const signal = eitherOf(place.signal, unwanted);
    let continued: Round['continued'] = {};
    for (let number = 1; ; number++) {
      const response = yield* exchange(mcpRequest, session, place, { number, continued }, cancelled);
      const asked = readAsked(mcpRequest.message, response);
      if (asked === null) return endOf(mcpRequest, place, response);
      if (number > ROUNDS_MAX) return refuse(mcpRequest, place, `it asked for input more than ${ROUNDS_MAX} times`);
      try {
        continued = yield* goOn(mcpRequest, session, asked, number, signal);
      } catch (error) {
        if (unwanted.aborted || !(error instanceof NoAnswer)) throw error;
        return refuse(mcpRequest, place, error.message);
      }
    }
  }

  async function* goOn(
    { callId, capabilities, events, toClient }: McpRequest,
    session: LegacySession,
    asked: PendingRequest,
    number: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, Round['continued'], undefined> {
    const state: Record<string, string> = asked.state === null ? {} : { requestState: asked.state };
    if (asked.requests.length > 0) {
      const client = { session: session.id, capabilities, events, toClient };
      return {
        inputResponses: yield* askClient(clientRequests, client, asked, `${callId}/${number}`, signal),
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
function endOf(mcpRequest: McpRequest, place: Place, response: ResponseMessage): ReplyEnd {
  const { message, toClient } = mcpRequest;
  const type = isObject(response.result) ? response.result['resultType'] : undefined;
  if (type !== undefined && type !== 'complete') {
    const text = `The server answered with a result of the type ${JSON.stringify(type)}, which a client with a session does not support`;
    return endWith(mcpRequest, place, errorText(message.idText, { code: ERROR.internal, message: text }));
  }
  const tail: McpTail = { text: toClient(toLegacyResponse(message, response)), status: 200 };
  return toEnd(message, place.offer, response, tail);
}

const endWith = ({ message }: McpRequest, { offer }: Place, text: string): ReplyEnd =>
  toEnd(message, offer, parseMessage(text) as ResponseMessage, { text, status: 200 } satisfies McpTail);

/**
 * Refuses a call for which the client could not give the input. For a tool call this is a result, because the model
 * reads it. Else it is an error.
 */
function refuse(mcpRequest: McpRequest, place: Place, why: string): ReplyEnd {
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

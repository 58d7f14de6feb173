import {
  errorText,
  eventText,
  isObject,
  type JsonRpcError,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  resultText,
  type Seals,
  UpstreamFailure,
} from '#wire';
import { refuseOtherAnswer, type ReplyEnd } from '#gateway';
import { toEnd } from '../../turn/ending.ts';
import type { HeldCalls } from '../held-calls.ts';
import { LATE } from '../../turn/mailbox.ts';
import { nameOf } from '../../wire/param-headers.ts';
import { ERROR, MODERN_METHODS, modernStatusOf } from '../../wire/revisions.ts';
import { priceOfTool } from '../../turn/tool-price.ts';
import type { Continued, Leg, McpTail, Place, Turn } from '../../turn/turn.ts';
import type { UpstreamSessions } from '../upstream-sessions.ts';
import { goOn, startCall, type Running } from './modern-to-legacy/begin-call.ts';
import { discoverText } from './modern-to-legacy/discover.ts';
import { listen } from './modern-to-legacy/listen.ts';
import { toClientNotification } from './modern-to-legacy/notification-text.ts';
import { canAnswer, QUESTIONS_CHARS_MAX, QUESTIONS_MAX, type Questions } from './modern-to-legacy/questions.ts';
import { toClientResponse } from './modern-to-legacy/response-text.ts';
import { SessionLost, type SessionCall } from './modern-to-legacy/session-call.ts';
import { urlInputRequests } from './modern-to-legacy/url-elicitation.ts';

export interface ModernToLegacyOptions {
  readonly sessions: UpstreamSessions;
  readonly held: HeldCalls;
  readonly seals: Seals;
  readonly replyBytesMax: number;
}

/** What a server asks together, it asks within this time. */
const TOGETHER_MS = 50;

const GONE = new Error('the client left');

/**
 * A modern or bare client in front of a legacy server. The request runs in a session that the gateway keeps for its
 * account. What the server asks in the middle of it becomes an `input_required` result; the call is held meanwhile,
 * and the client's next round goes on with it.
 */
export function createModernToLegacy({ sessions, held, seals, replyBytesMax }: ModernToLegacyOptions): Leg {
  const options = { sessions, held, replyBytesMax };
  return async function* modernToLegacy(turn, place) {
    const { message, continued } = turn;
    if (message.method === 'server/discover')
      return endWith(turn, place, turn.toClient(discoverText(message.idText, place.facts)));
    if (message.method === 'subscriptions/listen') return endWith(turn, place, yield* listen(turn, place, sessions));
    if (continued !== null && continued.held !== null) {
      const running = await goOn(turn, place, options, continued.held);
      if (running === null || running === 'elsewhere')
        return endWith(turn, place, errorText(message.idText, running === null ? USED : ELSEWHERE));
      return yield* follow(turn, place, running);
    }
    const running = await startCall(turn, place, options, true);
    try {
      return yield* follow(turn, place, running);
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      sessions.lost(running.call.session);
    }
    return yield* follow(turn, place, await startCall(turn, place, options, false));
  };

  /**
   * Reads what the server says of a call until there is an answer for the client: its response, or what the client
   * is to be asked.
   */
  async function* follow(
    turn: Turn,
    place: Place,
    { call, questions }: Running,
  ): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
    const { signal } = place;
    const stop = () => call.cancel(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    let kept = false;
    try {
      if (signal.aborted) stop();
      let until = questions.size > 0 ? performance.now() + TOGETHER_MS : null;
      for (;;) {
        const received = await call.next(until === null ? undefined : Math.max(0, until - performance.now()));
        if (received === LATE) {
          const id = hold(turn, place, call, questions);
          kept = true;
          return askClient(turn, place, questions.toInputRequests(), id);
        }
        if (received === null)
          throw new UpstreamFailure('the provider ended its answer without a response', {
            status: call.status,
            retryable: false,
            blame: 'provider',
          });
        const { message } = received;
        // A stream may have the response to another request in it, which is nobody's here. A reply that is one
        // message has to be the answer.
        if (message.kind === 'response' && received.raw === null) refuseOtherAnswer(message, call.id, call.status);
        if (message.kind === 'response' && (message.id === call.id || received.raw === null))
          return respond(turn, place, call, message);
        if (message.kind === 'request') ask(turn, call, questions, message);
        else if (message.kind === 'notification') {
          if (message.method === 'notifications/cancelled') questions.drop(message.params?.['requestId']);
          else if (!call.session.changed(received)) {
            const text = turn.events ? toClientNotification(turn, call, message) : null;
            if (text !== null) yield Buffer.from(eventText(turn.toClient(text)));
          }
        }
        if (questions.size === 0) until = null;
        else until ??= performance.now() + TOGETHER_MS;
      }
    } catch (error) {
      // Of a request that the server has not begun with, there is nothing to tell it.
      if (error instanceof SessionLost) call.over();
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
      // Without effect where the response is here.
      if (!kept) call.cancel(GONE);
    }
  }

  function hold({ caller, message }: Turn, { offer }: Place, call: SessionCall, questions: Questions): string {
    const { method, params } = message;
    return held.hold({
      account: caller.account,
      offerId: offer.id,
      method,
      name: nameOf(method, params),
      call,
      questions,
    });
  }

  /**
   * The result that asks the client. `heldId`: null where nothing is held, and the next round makes the request anew.
   */
  function askClient(turn: Turn, place: Place, inputRequests: string, heldId: string | null): ReplyEnd {
    const { offer, askedAt } = place;
    const { id: price } = priceOfTool(offer, turn.message.params?.['name']);
    const since = askedAt === undefined ? {} : { askedAt };
    const continued: Continued = { callId: turn.callId, offerId: offer.id, price, state: null, held: heldId, ...since };
    const state = JSON.stringify(seals.seal(turn.caller.account, continued));
    const result = `{"resultType":"input_required","inputRequests":${inputRequests},"requestState":${state}}`;
    return endWith(turn, place, turn.toClient(resultText(turn.message.idText, result)));
  }

  function respond(turn: Turn, place: Place, call: SessionCall, response: ResponseMessage): ReplyEnd {
    const { message, client, capabilities } = turn;
    call.over();
    const urls = client === 'modern' ? urlInputRequests(response) : null;
    if (urls !== null) {
      const { elicitation } = capabilities;
      if (MODERN_METHODS[message.method]?.inputRequired && isObject(elicitation) && isObject(elicitation['url']))
        return askClient(turn, place, urls, null);
      return endWith(turn, place, errorText(message.idText, NO_URLS));
    }
    const text = toClientResponse(turn, response);
    if (text === null)
      throw new UpstreamFailure('the provider answered with a result that is no object', {
        status: call.status,
        retryable: false,
        blame: 'provider',
      });
    const { error } = response;
    const status = call.status === 200 && error !== undefined ? modernStatusOf(error.code) : (call.status ?? 200);
    const tail: McpTail = { text: turn.toClient(text), status };
    // Whatever a legacy server calls its result, it is the whole of it.
    const whole = isObject(response.result)
      ? { ...response, result: { ...response.result, resultType: 'complete' } }
      : response;
    return toEnd(message, place.offer, whole, tail);
  }
}

/** Ends with a response of the gateway's own. */
function endWith({ message }: Turn, { offer }: Place, text: string): ReplyEnd {
  const response = parseMessage(text) as ResponseMessage;
  return toEnd(message, offer, response, { text, status: response.error ? modernStatusOf(response.error.code) : 200 });
}

/** What the server asks in the middle of a call: kept for the client, or refused where that cannot be asked. */
function ask(
  { client, capabilities }: Turn,
  { session, canBeAsked: askable }: SessionCall,
  questions: Questions,
  request: RequestMessage,
): void {
  const { idText, method } = request;
  if (method === 'ping') return session.tell(resultText(idText, '{}'));
  const room = questions.size < QUESTIONS_MAX && questions.chars + request.text.length <= QUESTIONS_CHARS_MAX;
  if (askable && client === 'modern' && room && canAnswer(capabilities, request)) return questions.add(request);
  const message = room ? `The client does not support ${method} here` : 'The client is asked too much at once';
  session.tell(errorText(idText, { code: ERROR.methodNotFound, message }));
}

const USED: JsonRpcError = {
  code: ERROR.invalidParams,
  message: 'this requestState was used or has expired, or is of another request: make the request again without it',
};
const ELSEWHERE: JsonRpcError = {
  code: ERROR.invalidParams,
  message:
    'this requestState belongs to a call that another gateway of this installation holds: make the request again without it',
};
const NO_URLS: JsonRpcError = {
  code: ERROR.missingCapability,
  message: 'The tool needs its user to open a URL, which the client does not support',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};

import { errorText, type JsonRpcError, type RequestMessage, resultText, type Seals, UpstreamFailure } from '#wire';
import { isIdOf, refuseOtherAnswer, type ReplyEnd } from '#gateway';
import type { HeldCalls } from '../held-calls.ts';
import { freeEnd } from '../../request/ending.ts';
import { eventBytes } from '../../request/events.ts';
import { LATE } from '../../request/mailbox.ts';
import { withoutResponse } from '../../request/provider-failure.ts';
import { nameOf } from '../../wire/param-headers.ts';
import { ERROR } from '../../wire/revisions.ts';
import type { EraTranslator, Place, McpRequest } from '../../request/mcp-request.ts';
import type { UpstreamSessions } from '../upstream-sessions.ts';
import { goOn, startCall, type Running } from './modern-to-legacy/begin-call.ts';
import { CANCEL_GRACE_MS } from './legacy-to-legacy.ts';
import { discoverText } from './modern-to-legacy/discover.ts';
import { endAsking, endWith, endWithResponse } from './modern-to-legacy/end-call.ts';
import { listen } from './modern-to-legacy/listen.ts';
import { toClientNotification } from './modern-to-legacy/notification-text.ts';
import { canAnswer, QUESTIONS_CHARS_MAX, QUESTIONS_MAX, type Questions } from './modern-to-legacy/questions.ts';
import { SessionLost, type SessionCall } from './modern-to-legacy/session-call.ts';

export interface ModernToLegacyOptions {
  readonly sessions: UpstreamSessions;
  readonly held: HeldCalls;
  readonly seals: Seals;
  readonly replyBytesMax: number;
  /** How long a tool may still answer after its client has cancelled. Such an answer is paid. Default: 2 s. */
  readonly cancelGraceMs?: number;
}

/** Questions that a server asks within this time reach the client together. */
const TOGETHER_MS = 50;

const GONE = new Error('the client left');

/**
 * A modern or bare client in front of a legacy server. The request runs in a session that the gateway keeps for the
 * client's account. If the server asks the client a question meanwhile, the question becomes an `input_required`
 * result. The call is held until the client's next round continues it.
 */
export function createModernToLegacy(options: ModernToLegacyOptions): EraTranslator {
  const { sessions } = options;
  return async function* modernToLegacy(mcpRequest, place) {
    const { message, continued } = mcpRequest;
    if (message.method === 'server/discover')
      return endWith(mcpRequest, place, mcpRequest.toClient(discoverText(message.idText, place.facts)));
    if (message.method === 'subscriptions/listen')
      return endWith(mcpRequest, place, yield* listen(mcpRequest, place, sessions));
    if (continued !== null && continued.held !== null) {
      const running = await goOn(mcpRequest, place, options, continued.held);
      if (running === null || running === 'elsewhere')
        return endWith(mcpRequest, place, errorText(message.idText, running === null ? USED : ELSEWHERE));
      return yield* follow(mcpRequest, place, running, options);
    }
    const running = await startCall(mcpRequest, place, options, true);
    try {
      return yield* follow(mcpRequest, place, running, options);
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      sessions.lost(running.call.session);
    }
    return yield* follow(mcpRequest, place, await startCall(mcpRequest, place, options, false), options);
  };
}

/**
 * Reads messages of the server until there is something to answer the client with: the response, or questions to the
 * client.
 */
async function* follow(
  mcpRequest: McpRequest,
  place: Place,
  { call, questions }: Running,
  { held, seals, cancelGraceMs = CANCEL_GRACE_MS }: ModernToLegacyOptions,
): AsyncGenerator<Uint8Array, ReplyEnd, undefined> {
  const { signal } = place;
  const stop = () => call.cancel(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  // Closing the stream cancels a request of 2026-07-28. The server is told at once, and not after the time to drain.
  const left = mcpRequest.client === 'modern' ? mcpRequest.left : undefined;
  const leave = () => call.leave(GONE, cancelGraceMs);
  left?.addEventListener('abort', leave);
  let kept = false;
  try {
    if (signal.aborted) stop();
    if (left?.aborted) leave();
    let until = questions.size > 0 ? performance.now() + TOGETHER_MS : null;
    for (;;) {
      const received = await call.next(until === null ? undefined : Math.max(0, until - performance.now()));
      if (received === LATE) {
        const id = hold(held, mcpRequest, place, call, questions);
        kept = true;
        return endAsking(seals, mcpRequest, place, questions.toInputRequests(), id);
      }
      if (received === null) throw withoutResponse(call.status);
      const { message } = received;
      // A stream may hold the response to another request, and that response is skipped. A reply that is a single
      // message must be the answer.
      if (message.kind === 'response' && received.raw === null) refuseOtherAnswer(message, call.id, call.status);
      if (message.kind === 'response' && (isIdOf(message, call.id) || received.raw === null)) {
        call.over();
        return endWithResponse(seals, mcpRequest, place, call, message);
      }
      if (message.kind === 'request') ask(mcpRequest, call, questions, message);
      else if (message.kind === 'notification') {
        if (message.method === 'notifications/cancelled') questions.drop(message.params?.['requestId']);
        else if (!call.session.changed(received)) {
          const text = mcpRequest.events ? toClientNotification(mcpRequest, call, message) : null;
          if (text !== null) yield eventBytes(mcpRequest.toClient(text));
        }
      }
      if (questions.size === 0) until = null;
      else until ??= performance.now() + TOGETHER_MS;
    }
  } catch (error) {
    // The server has not begun to process the request, so there is nothing to cancel.
    if (error instanceof SessionLost) call.over();
    // A server need not answer a cancelled request, and has not failed if it does not.
    else if (left?.aborted && !(error instanceof UpstreamFailure && error.tooLarge)) return freeEnd(null, 'cancelled');
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    left?.removeEventListener('abort', leave);
    // Has no effect if the response has arrived.
    if (!kept) call.cancel(GONE);
  }
}

function hold(
  held: HeldCalls,
  { caller, message }: McpRequest,
  { offer }: Place,
  call: SessionCall,
  questions: Questions,
): string {
  const { method, params } = message;
  const name = nameOf(method, params);
  return held.hold({ account: caller.account, offerId: offer.id, method, name, call, questions });
}

/** Keeps a question of the server for the client, or refuses it if the client cannot be asked. */
function ask(
  { client, capabilities }: McpRequest,
  { session, canBeAsked: askable }: SessionCall,
  questions: Questions,
  request: RequestMessage,
): void {
  const { idText, method } = request;
  if (method === 'ping') return session.tell(resultText(idText, '{}'));
  const room = questions.size < QUESTIONS_MAX && questions.chars + request.text.length <= QUESTIONS_CHARS_MAX;
  if (askable && client === 'modern' && room && canAnswer(capabilities, request)) return questions.add(request);
  const message = room
    ? `The client does not support ${method} here`
    : 'Too many requests to the client wait for an answer';
  session.tell(errorText(idText, { code: ERROR.methodNotFound, message }));
}

const USED: JsonRpcError = {
  code: ERROR.invalidParams,
  message:
    'This requestState was already used, has expired, or belongs to another request. Repeat the request without it',
};
const ELSEWHERE: JsonRpcError = {
  code: ERROR.invalidParams,
  message: 'This requestState belongs to a call at another gateway of this installation. Repeat the request without it',
};

import {
  errorText,
  type JsonRpcError,
  type RequestMessage,
  resultText,
  parseMessage,
  type ResponseMessage,
  isIdOf,
  refuseOtherAnswer,
} from '#json-rpc';
import type { Seals } from '#security';
import { UpstreamFailure, isObject } from '#wire';
import {
  type HeldCalls,
  canAnswer,
  QUESTIONS_CHARS_MAX,
  QUESTIONS_MAX,
  type Questions,
  canBeAsked,
  createQuestions,
} from '../servers/held-calls.ts';
import { freeEnd, withoutResponse, providerFailure, toEnd, toServerEnd } from '../request/ending.ts';
import {
  eventBytes,
  type EraTranslator,
  type ServerPlace,
  type McpEnd,
  type McpRequest,
} from '../request/mcp-request.ts';
import { LATE, orAbort } from '../request/waiting.ts';
import { nameOf } from '../wire/param-headers.ts';
import { ERROR, MODERN_METHODS, modernStatusOf } from '../wire/revisions.ts';
import type { UpstreamSessions } from '../servers/upstream-sessions.ts';
import { CANCEL_GRACE_MS } from './legacy-to-legacy.ts';
import {
  discoverText,
  toClientNotification,
  levelOf,
  toClientResponse,
  urlInputRequests,
} from '../request/modern-to-legacy-text.ts';
import { listen } from './modern-to-legacy-listen.ts';
import { SessionLost, type SessionCall, startSessionCall } from '../servers/session-call.ts';
import { sealState } from '../request/request-state.ts';

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
// oxlint-disable-next-line complexity -- the branches are the events of one stream
async function* follow(
  mcpRequest: McpRequest,
  place: ServerPlace,
  { call, questions }: RunningCall,
  { held, seals, cancelGraceMs = CANCEL_GRACE_MS }: ModernToLegacyOptions,
): AsyncGenerator<Uint8Array, McpEnd, undefined> {
  const { signal } = place;
  const stop = () => call.cancel(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  // Closing the stream cancels a request of 2026-07-28. The server is told at once, and not after the time to drain.
  const clientGone = mcpRequest.client === 'modern' ? mcpRequest.clientGone : undefined;
  const leave = () => call.leave(GONE, cancelGraceMs);
  clientGone?.addEventListener('abort', leave);
  let isHeld = false;
  try {
    if (signal.aborted) stop();
    if (clientGone?.aborted) leave();
    let until = questions.size > 0 ? performance.now() + TOGETHER_MS : null;
    for (;;) {
      const received = await call.next(until === null ? undefined : Math.max(0, until - performance.now()));
      if (received === LATE) {
        const id = hold(held, mcpRequest, place, call, questions);
        isHeld = true;
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
    else if (clientGone?.aborted && !(error instanceof UpstreamFailure && error.tooLarge))
      return freeEnd(null, 'cancelled');
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
    clientGone?.removeEventListener('abort', leave);
    // Has no effect if the response has arrived.
    if (!isHeld) call.cancel(GONE);
  }
}

function hold(
  held: HeldCalls,
  { caller, message }: McpRequest,
  { offer }: ServerPlace,
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

/** A running request in a session, with the questions for its client. */
interface RunningCall {
  readonly call: SessionCall;
  readonly questions: Questions;
}

interface BeginCallOptions {
  readonly sessions: UpstreamSessions;
  readonly held: HeldCalls;
  readonly replyBytesMax: number;
}

const BROKEN = new Error("the client's answer could not be delivered");

/**
 * Posts the client's request. `mayBeLost`: the call throws SessionLost if the server no longer knows the session.
 * Throws UpstreamFailure, GatewayError.
 */
async function startCall(
  mcpRequest: McpRequest,
  place: ServerPlace,
  options: BeginCallOptions,
  mayBeLost: boolean,
): Promise<RunningCall> {
  const { message, capabilities } = mcpRequest;
  const { signal } = place;
  const askable =
    mcpRequest.client === 'modern' &&
    MODERN_METHODS[message.method]?.inputRequired === true &&
    canBeAsked(capabilities);
  const session = await orAbort(options.sessions.sessionOf(mcpRequest, place), signal);
  const leave = session.enter();
  try {
    const level = levelOf(mcpRequest);
    if (level !== null) await orAbort(session.logFrom(level), signal);
    if (askable && session.upstreamId !== null) await orAbort(session.openStream(), signal);
    const { replyBytesMax: bytesMax } = options;
    const call = startSessionCall({ session, send: place.detached, message, canBeAsked: askable, mayBeLost, bytesMax });
    return { call, questions: createQuestions() };
  } finally {
    leave();
  }
}

/**
 * Takes the held call with this id, and delivers the client's answers to its server. Null if this request may not
 * continue the call; `elsewhere` if another gateway holds it. Throws UpstreamFailure if the server does not accept an
 * answer.
 */
async function goOn(
  mcpRequest: McpRequest,
  place: ServerPlace,
  { held }: BeginCallOptions,
  heldId: string,
): Promise<RunningCall | 'elsewhere' | null> {
  const { message, caller } = mcpRequest;
  const { method, params } = message;
  const heldCall = held.take(heldId, {
    account: caller.account,
    offerId: place.offer.id,
    method,
    name: nameOf(method, params),
  });
  if (heldCall === null || heldCall === 'elsewhere') return heldCall;
  const { call, questions } = heldCall;
  try {
    for (const answer of questions.answer(message)) await orAbort(deliver(call, place, answer), place.signal);
  } catch (error) {
    call.cancel(BROKEN);
    throw error;
  }
  return { call, questions };
}

async function deliver({ session }: SessionCall, { detached }: ServerPlace, answer: string): Promise<void> {
  const reply = await session.post(answer, detached).head;
  reply.discard();
  if (reply.status >= 400)
    throw providerFailure("the provider rejected the client's answer to its tool's question", reply.status);
}

/** Ends a call with a response that the gateway itself wrote (JSON text). */
function endWith({ message }: McpRequest, { offer }: ServerPlace, text: string): McpEnd {
  const response = parseMessage(text) as ResponseMessage;
  return toEnd(message, offer, response, { text, status: response.error ? modernStatusOf(response.error.code) : 200 });
}

/**
 * Ends a round with a result that asks the client for input. `held`: id of the held call. Null if the next round
 * repeats the request.
 */
function endAsking(
  seals: Seals,
  mcpRequest: McpRequest,
  place: ServerPlace,
  inputRequests: string,
  held: string | null,
): McpEnd {
  const state = sealState(seals, mcpRequest, place, { state: null, held });
  const result = `{"resultType":"input_required","inputRequests":${inputRequests},"requestState":${state}}`;
  return endWith(mcpRequest, place, mcpRequest.toClient(resultText(mcpRequest.message.idText, result)));
}

/** Ends a call with the response of its server. Throws UpstreamFailure. */
function endWithResponse(
  seals: Seals,
  mcpRequest: McpRequest,
  place: ServerPlace,
  { status }: SessionCall,
  response: ResponseMessage,
): McpEnd {
  const { message, client, capabilities } = mcpRequest;
  const urls = client === 'modern' ? urlInputRequests(response) : null;
  if (urls !== null) {
    const { elicitation } = capabilities;
    if (MODERN_METHODS[message.method]?.inputRequired && isObject(elicitation) && isObject(elicitation['url']))
      return endAsking(seals, mcpRequest, place, urls, null);
    return endWith(mcpRequest, place, errorText(message.idText, NO_URLS));
  }
  return toServerEnd(mcpRequest, place, response, (read) => {
    const text = toClientResponse(mcpRequest, read);
    if (text === null) throw providerFailure('the provider answered with a result that is not an object', status);
    const { error } = read;
    return {
      text: mcpRequest.toClient(text),
      status: status === 200 && error !== undefined ? modernStatusOf(error.code) : (status ?? 200),
    };
  });
}

const NO_URLS: JsonRpcError = {
  code: ERROR.missingCapability,
  message: 'The tool needs its user to open a URL, which the client does not support',
  data: { requiredCapabilities: { elicitation: { url: {} } } },
};

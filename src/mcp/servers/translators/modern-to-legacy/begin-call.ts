import type { HeldCalls } from '../../held-calls.ts';
import { nameOf } from '../../../wire/param-headers.ts';
import { MODERN_METHODS } from '../../../wire/revisions.ts';
import type { Place, McpRequest } from '../../../request/mcp-request.ts';
import type { UpstreamSessions } from '../../upstream-sessions.ts';
import { levelOf } from './notification-text.ts';
import { providerFailure } from '../../../request/provider-failure.ts';
import { orAbort } from '../../../request/waiting.ts';
import { canBeAsked, createQuestions, type Questions } from './questions.ts';
import { startSessionCall, type SessionCall } from './session-call.ts';

/** A running request in a session, with the questions for its client. */
export interface Running {
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
 * Posts the request of a turn. `mayBeLost`: the call throws SessionLost if the server no longer knows the session.
 * Throws UpstreamFailure, GatewayError.
 */
export async function startCall(
  mcpRequest: McpRequest,
  place: Place,
  options: BeginCallOptions,
  mayBeLost: boolean,
): Promise<Running> {
  const { message, capabilities } = mcpRequest;
  const { signal } = place;
  const askable =
    mcpRequest.client === 'modern' &&
    MODERN_METHODS[message.method]?.inputRequired === true &&
    canBeAsked(capabilities);
  const session = await orAbort(options.sessions.of(mcpRequest, place), signal);
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
 * Takes the held call with this id, and delivers the client's answers to its server. Null if this turn may not continue
 * the call; `elsewhere` if another gateway holds it. Throws UpstreamFailure if the server does not accept an answer.
 */
export async function goOn(
  mcpRequest: McpRequest,
  place: Place,
  { held }: BeginCallOptions,
  heldId: string,
): Promise<Running | 'elsewhere' | null> {
  const { message, caller } = mcpRequest;
  const { method, params } = message;
  const found = held.take(heldId, {
    account: caller.account,
    offerId: place.offer.id,
    method,
    name: nameOf(method, params),
  });
  if (found === null || found === 'elsewhere') return found;
  const { call, questions } = found;
  try {
    for (const answer of questions.answer(message)) await orAbort(deliver(call, place, answer), place.signal);
  } catch (error) {
    call.cancel(BROKEN);
    throw error;
  }
  return { call, questions };
}

async function deliver({ session }: SessionCall, { detached }: Place, answer: string): Promise<void> {
  const reply = await session.post(answer, detached).head;
  reply.discard();
  if (reply.status >= 400)
    throw providerFailure("the provider rejected the client's answer to its tool's question", reply.status);
}

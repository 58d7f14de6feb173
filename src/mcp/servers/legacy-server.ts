// What the gateway posts to a server and how it reads the answer: `initialize`, the end of a session, refusals. The
// headers and the first response of a reply are the same for servers of both eras.

import { isObject, type JsonObject, UpstreamFailure, setMember, splice } from '#wire';
import { type ResponseMessage, type RequestMessage, resultText, readReply } from '#json-rpc';
import type { Send, UpstreamReply } from '#call';
import { readableFacts } from '../shapes/results.ts';
import { withoutTasksIn } from '../request/extension.ts';
import { providerFailure, refuseCredentialStatus, withoutResponse } from '../request/ending.ts';
import { notificationText } from '../wire/own-messages.ts';
import { isLegacyRevision, MODERN } from '../wire/revisions.ts';
import type { McpResponse, ServerPlace, ServerFacts } from '../request/mcp-request.ts';

const ANSWER_BYTES_MAX = 1024 * 1024;

/** A session as its legacy server knows it. */
export interface ServerSession {
  /** The server's `Mcp-Session-Id`; null if the server keeps no sessions. */
  readonly upstreamId: string | null;
  readonly revision: string;
}

export function sessionHeaders({ upstreamId, revision }: ServerSession): Record<string, string> {
  return { 'mcp-protocol-version': revision, ...(upstreamId === null ? {} : { 'mcp-session-id': upstreamId }) };
}

interface Initialized {
  readonly response: ResponseMessage;
  readonly status: number;
  /** null if the server refused. */
  readonly accepted: (ServerSession & { readonly result: JsonObject }) | null;
}

/**
 * Sends an `initialize` message (JSON text). Removes the capability for tasks, because sessions do not carry tasks.
 * Throws UpstreamFailure. It is always retryable, because no tool has acted yet.
 */
export async function initializeAt(send: Send, text: string): Promise<Initialized> {
  try {
    const reply = await send({ method: 'POST', path: '', headers: POST_HEADERS, body: withoutTasksIn(text, 'params') })
      .head;
    const { status } = reply;
    await refuseCredentialStatus(reply);
    const response = await firstResponse(reply, ANSWER_BYTES_MAX);
    if (response === null) throw withoutResponse(status);
    const { result } = response;
    if (response.error !== undefined) return { response, status, accepted: null };
    const revision = isObject(result) ? result['protocolVersion'] : undefined;
    if (!isObject(result) || typeof revision !== 'string' || !VISIBLE.test(revision))
      throw providerFailure('it answered initialize without a protocol version', status);
    const upstreamId = reply.headers['mcp-session-id'] ?? null;
    if (upstreamId !== null && (typeof upstreamId !== 'string' || !VISIBLE.test(upstreamId)))
      throw providerFailure('its session id is not visible ASCII', status);
    return { response, status, accepted: { result, revision, upstreamId } };
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.retryable) throw error;
    const { attributedTo, providerFacts } = error;
    throw new UpstreamFailure(error.message, { ...providerFacts, attributedTo, retryable: true, cause: error });
  }
}

/** A valid session id. The specification requires visible ASCII. */
const VISIBLE = /^[!-~]{1,1024}$/;

export async function postInitialized(send: Send, session: ServerSession): Promise<number> {
  const headers = { ...POST_HEADERS, ...sessionHeaders(session) };
  const reply = await send({ method: 'POST', path: '', headers, body: INITIALIZED }).head;
  reply.discard();
  return reply.status;
}

const INITIALIZED = notificationText('notifications/initialized');

/** Tells the server that its client is ready. Throws UpstreamFailure if the server refuses. */
export async function notifyInitialized(send: Send, session: ServerSession): Promise<void> {
  const status = await postInitialized(send, session);
  if (status >= 300) throw providerFailure(`it answered notifications/initialized with status ${status}`, status);
}

/** Ends a session at its server. Servers that do not support this (405) let the session expire. */
export async function leaveServer(send: Send, session: ServerSession): Promise<void> {
  if (session.upstreamId === null) return;
  (await send({ method: 'DELETE', path: '', headers: sessionHeaders(session), body: null }).head).discard();
}

/** The JSON-RPC error in a reply with an error status, or the failure that this status is without one. */
export async function readRefusal(reply: UpstreamReply): Promise<ResponseMessage | UpstreamFailure> {
  try {
    for await (const { message } of readReply(reply, ANSWER_BYTES_MAX))
      if (message?.kind === 'response') return message;
      else break;
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.status === null) throw error;
    return error;
  }
  return providerFailure(`it answered with status ${reply.status}`, reply.status);
}

/**
 * Whether a refusal means that the server has lost the session. The specification has status 404 for it. The example
 * from which most servers were made answers 400, with a text that mentions the session.
 */
export function isSessionLost(status: number, refusal: ResponseMessage | UpstreamFailure | null): boolean {
  if (status === 404) return true;
  const error = refusal instanceof UpstreamFailure ? undefined : refusal?.error;
  return status === 400 && error?.code === -32_000 && /session/i.test(error.message);
}

/**
 * The result of `initialize` (JSON text) for a client that asks for the revision `requested`, in front of a modern
 * server.
 */
export type InitializeResult = (facts: ServerFacts, requested: string | null) => string;

interface InitializeAnswer {
  readonly response: McpResponse;
  readonly accepted: { readonly revision: string; readonly upstreamId: string | null } | null;
}

/**
 * The answer to `initialize`. A legacy server gives its own; else it is made from the server's facts. Throws
 * UpstreamFailure.
 */
export async function answerInitialize(
  { idText, text, params }: RequestMessage,
  { facts, send }: Pick<ServerPlace, 'facts' | 'send'>,
  initializeResult: InitializeResult,
): Promise<InitializeAnswer> {
  const revision = params?.['protocolVersion'];
  const requested = typeof revision === 'string' ? revision : null;
  if (facts.era === 'legacy' && !facts.bare) {
    const { response, status, accepted } = await initializeAt(send, text);
    if (accepted === null) return { response: { status, text: response.text }, accepted };
    const { start, end } = response.members.get('result')!;
    const factsText = readableFacts(response.text.slice(start, end), accepted.result);
    const whole = splice(response.text, [{ start, end, text: factsText }]);
    return { response: { status, text: withoutTasksIn(whole, 'result') }, accepted };
  }
  const result = facts.bare ? bareResult(facts, requested) : initializeResult(facts, requested);
  const { protocolVersion } = JSON.parse(result) as { readonly protocolVersion: string };
  return {
    response: { status: 200, text: resultText(idText, result) },
    accepted: { revision: protocolVersion, upstreamId: null },
  };
}

/** A server without a handshake has no revision, so the client gets the one that it asked for. */
function bareResult({ text }: ServerFacts, requested: string | null): string {
  if (requested === null || !isLegacyRevision(requested)) return text;
  return splice(text, [setMember(text, 0, 'protocolVersion', JSON.stringify(requested))]);
}

/**
 * The first response in a reply; null if the reply ends without one. Notifications and requests before it are dropped,
 * and so is the rest of the reply. Throws UpstreamFailure.
 */
export async function firstResponse(reply: UpstreamReply, bytesMax: number): Promise<ResponseMessage | null> {
  try {
    for await (const { message } of readReply(reply, bytesMax)) if (message?.kind === 'response') return message;
    return null;
  } finally {
    reply.discard();
  }
}

export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

export const MODERN_POST_HEADERS = { ...POST_HEADERS, 'mcp-protocol-version': MODERN } as const;

import { isObject, type JsonObject, type ResponseMessage, UpstreamFailure } from '#wire';
import { readReply, type Send, type UpstreamReply } from '#gateway';
import { withoutTasksIn } from '../tasks/extension.ts';
import { providerFailure, refuseCredentialStatus } from '../turn/provider-failure.ts';
import { notificationText } from '../wire/own-messages.ts';
import { firstResponse } from './first-response.ts';
import { POST_HEADERS } from './post-headers.ts';

/** Longest answer to `initialize`, and longest refusal. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** A session as its legacy server knows it. */
export interface ServerSession {
  /** The server's `Mcp-Session-Id`; null from a server that keeps no sessions. */
  readonly upstreamId: string | null;
  readonly revision: string;
}

/** Headers by which a legacy server knows a session. */
export function sessionHeaders({ upstreamId, revision }: ServerSession): Record<string, string> {
  return { 'mcp-protocol-version': revision, ...(upstreamId === null ? {} : { 'mcp-session-id': upstreamId }) };
}

/** A server's answer to `initialize`. */
export interface Initialized {
  readonly response: ResponseMessage;
  readonly status: number;
  /** null where the server refused. */
  readonly accepted: (ServerSession & { readonly result: JsonObject }) | null;
}

/**
 * Sends an `initialize` message (JSON text), without the tasks that its client declares: sessions do not carry them.
 * Throws UpstreamFailure, always retryable: no tool has acted.
 */
export async function initializeAt(send: Send, text: string): Promise<Initialized> {
  try {
    const reply = await send({ method: 'POST', path: '', headers: POST_HEADERS, body: withoutTasksIn(text, 'params') })
      .head;
    const { status } = reply;
    refuseCredentialStatus(status);
    const response = await firstResponse(reply, ANSWER_BYTES_MAX);
    if (response === null) throw providerFailure('it ended its answer without a response', status);
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
    const { status, blame } = error;
    throw new UpstreamFailure(error.message, { status, blame, retryable: true, cause: error });
  }
}

/** Characters of a session id: the specification asks for visible ASCII. */
const VISIBLE = /^[!-~]{1,1024}$/;

/** Tells the server that its client is ready. Resolves with the HTTP status of its answer. */
export async function postInitialized(send: Send, session: ServerSession): Promise<number> {
  const headers = { ...POST_HEADERS, ...sessionHeaders(session) };
  const reply = await send({ method: 'POST', path: '', headers, body: INITIALIZED }).head;
  reply.discard();
  return reply.status;
}

const INITIALIZED = notificationText('notifications/initialized');

/** The same. Throws UpstreamFailure where the server refuses. */
export async function notifyInitialized(send: Send, session: ServerSession): Promise<void> {
  const status = await postInitialized(send, session);
  if (status >= 300) throw providerFailure(`it answered notifications/initialized with status ${status}`, status);
}

/** Ends a session at its server. Servers that do not know how to (405) end it by themselves. */
export async function leaveServer(send: Send, session: ServerSession): Promise<void> {
  if (session.upstreamId === null) return;
  (await send({ method: 'DELETE', path: '', headers: sessionHeaders(session), body: null }).head).discard();
}

/** The JSON-RPC error that came with an error status; null without one. */
export async function readRefusal(reply: UpstreamReply): Promise<ResponseMessage | null> {
  try {
    for await (const { message } of readReply(reply, ANSWER_BYTES_MAX))
      return message?.kind === 'response' ? message : null;
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.status === null) throw error;
  }
  return null;
}

/**
 * Whether a refusal says that the server has lost the session: 404 by the specification. The example that most
 * servers were made from answers 400 in words.
 */
export function isSessionLost(status: number, refusal: ResponseMessage | null): boolean {
  if (status === 404) return true;
  return status === 400 && refusal?.error?.code === -32_000 && /session/i.test(refusal.error.message);
}

import { isObject, type JsonObject, type ResponseMessage, UpstreamFailure } from '#wire';
import { readReply, type Send, type UpstreamReply } from '#gateway';
import type { LegacySession } from '../turn/session.ts';
import { withoutTasksIn } from '../tasks/extension.ts';

/** Of an answer that is no tool's. */
const ANSWER_BYTES_MAX = 1024 * 1024;

export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

/** Headers by which a legacy server knows a session. */
export function sessionHeaders({
  upstreamId,
  revision,
}: Pick<LegacySession, 'upstreamId' | 'revision'>): Record<string, string> {
  return { 'mcp-protocol-version': revision, ...(upstreamId === null ? {} : { 'mcp-session-id': upstreamId }) };
}

/** A server's answer to `initialize`. */
export interface Initialized {
  readonly response: ResponseMessage;
  readonly status: number;
  /** null where the server refused. */
  readonly accepted: {
    readonly result: JsonObject;
    readonly revision: string;
    readonly upstreamId: string | null;
  } | null;
}

/**
 * Sends an `initialize` message as it is, but for the tasks that its client declares: they are not carried in
 * sessions. Throws UpstreamFailure, always retryable: no tool has acted.
 */
export async function initializeAt(send: Send, text: string): Promise<Initialized> {
  try {
    const reply = await send({ method: 'POST', path: '', headers: POST_HEADERS, body: withoutTasksIn(text, 'params') })
      .head;
    refuseOurs(reply);
    const response = await firstResponse(reply);
    const { result } = response;
    if (response.error !== undefined) return { response, status: reply.status, accepted: null };
    const revision = isObject(result) ? result['protocolVersion'] : undefined;
    if (!isObject(result) || typeof revision !== 'string' || !VISIBLE.test(revision))
      throw failure('it answered initialize without a protocol version', reply);
    const upstreamId = reply.headers['mcp-session-id'] ?? null;
    if (upstreamId !== null && (typeof upstreamId !== 'string' || !VISIBLE.test(upstreamId)))
      throw failure('its session id is not visible ASCII', reply);
    return { response, status: reply.status, accepted: { result, revision, upstreamId } };
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.retryable) throw error;
    const { status, blame } = error;
    throw new UpstreamFailure(error.message, { status, blame, retryable: true, cause: error });
  }
}

/** What may stand in a header: the specification asks for visible ASCII. */
const VISIBLE = /^[!-~]{1,1024}$/;

/** Tells the server that its client is ready. */
export async function notifyInitialized(
  send: Send,
  session: Pick<LegacySession, 'upstreamId' | 'revision'>,
): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const reply = await send({ method: 'POST', path: '', headers: { ...POST_HEADERS, ...sessionHeaders(session) }, body })
    .head;
  reply.discard();
  if (reply.status >= 300) throw failure(`it answered notifications/initialized with status ${reply.status}`, reply);
}

/** Ends a session at its server. Servers that do not know how to (405) end it by themselves. */
export async function leaveServer(send: Send, session: Pick<LegacySession, 'upstreamId' | 'revision'>): Promise<void> {
  if (session.upstreamId === null) return;
  (await send({ method: 'DELETE', path: '', headers: sessionHeaders(session), body: null }).head).discard();
}

async function firstResponse(reply: UpstreamReply): Promise<ResponseMessage> {
  for await (const { message } of readReply(reply, ANSWER_BYTES_MAX)) {
    if (message?.kind !== 'response') continue;
    reply.discard();
    return message;
  }
  throw failure('it ended its answer without a response', reply);
}

/**
 * A server that refuses the provider's credentials says nothing of the client, which would take it for its own.
 * Throws UpstreamFailure.
 */
export function refuseOurs(reply: UpstreamReply): void {
  const { status } = reply;
  if (status === 401 || status === 403 || status === 407) throw failure(`it answered with status ${status}`, reply);
}

/** An error status: the JSON-RPC error that came with it, null where there was none. */
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
 * Whether a refusal says that the server has the session no more: 404 by the specification; the example that most
 * servers were made from answers 400 in words.
 */
export function isSessionLost(status: number, refusal: ResponseMessage | null): boolean {
  if (status === 404) return true;
  return status === 400 && refusal?.error?.code === -32_000 && /session/i.test(refusal.error.message);
}

/** Never retryable: a tool may have acted. */
export function failure(what: string, { status }: Pick<UpstreamReply, 'status'>): UpstreamFailure {
  return new UpstreamFailure(what, { status, retryable: false, blame: 'provider' });
}

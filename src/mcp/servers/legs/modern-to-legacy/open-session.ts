import { isObject, type JsonObject, type ResponseMessage, UpstreamFailure } from '#wire';
import { readReply, type Send } from '#gateway';
import { isLegacyRevision, LEGACY } from '../../../wire/revisions.ts';

/** A session as its server gave it. */
export interface OpenedSession {
  /** null of a server that keeps none. */
  readonly id: string | null;
  readonly revision: string;
  readonly capabilities: JsonObject;
}

export interface SessionClient {
  /** What the client can do for the server, as it declares it. */
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
}

/** Of the answer to `initialize`. */
const BYTES_MAX = 1024 * 1024;

export const POST_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

/** Headers of whatever is sent in a session. */
export function sessionHeaders({ id, revision }: Pick<OpenedSession, 'id' | 'revision'>): Record<string, string> {
  return { 'mcp-protocol-version': revision, ...(id === null ? {} : { 'mcp-session-id': id }) };
}

/**
 * Says `initialize` in the client's name. Throws UpstreamFailure; of the client's own request nothing was sent by then.
 */
export async function openSession(send: Send, { capabilities, clientInfo }: SessionClient): Promise<OpenedSession> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: LEGACY[0], capabilities, clientInfo },
  });
  try {
    const exchange = send({ method: 'POST', path: '', headers: POST_HEADERS, body });
    const reply = await exchange.head;
    const id = reply.headers['mcp-session-id'];
    let answer: ResponseMessage | null = null;
    for await (const { message } of readReply(reply, BYTES_MAX)) {
      if (message?.kind !== 'response') continue;
      answer = message;
      break;
    }
    reply.discard();
    const { protocolVersion: revision, capabilities: own } = isObject(answer?.result) ? answer.result : NOTHING;
    if (typeof revision !== 'string' || !isLegacyRevision(revision)) throw refused(reply.status, answer);
    const session = { id: typeof id === 'string' ? id : null, revision, capabilities: isObject(own) ? own : NOTHING };
    const initialized = send({
      method: 'POST',
      path: '',
      headers: { ...POST_HEADERS, ...sessionHeaders(session) },
      body: INITIALIZED,
    });
    (await initialized.head).discard();
    return session;
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.unsent) throw error;
    throw new UpstreamFailure(error.message, {
      status: error.status,
      retryable: true,
      blame: error.blame,
      unsent: true,
      cause: error,
    });
  }
}

const NOTHING: JsonObject = {};
const INITIALIZED = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });

function refused(status: number, answer: ResponseMessage | null): UpstreamFailure {
  const why = answer?.error
    ? `refused initialize with error ${answer.error.code}`
    : 'did not answer initialize as MCP says';
  return new UpstreamFailure(`the provider's server ${why}`, { status, retryable: true, blame: 'provider' });
}

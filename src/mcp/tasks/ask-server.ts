import { type RequestId, type ResponseMessage, UpstreamFailure } from '#wire';
import { readReply, type Send } from '#gateway';
import { POST_HEADERS } from '../servers/legs/modern-to-modern.ts';
import { standardHeaders } from '../wire/param-headers.ts';

/** A request about a task, with the id that its server knows. */
export interface TaskQuestion {
  readonly method: string;
  readonly id: RequestId;
  /** The id of the task, as the server knows it. */
  readonly taskId: string;
  /** The whole message, JSON text. */
  readonly text: string;
}

export interface ServerAnswer {
  readonly response: ResponseMessage;
  readonly status: number;
}

/**
 * Posts a request about a task to its server, and reads the response. Notifications before it are dropped. Rejects
 * with UpstreamFailure.
 */
export async function askServer(
  send: Send,
  question: TaskQuestion,
  bytesMax: number,
  timeoutMs?: number,
): Promise<ServerAnswer> {
  const { method, id, taskId, text } = question;
  const headers: Record<string, string> = { ...POST_HEADERS };
  for (const [name, value] of Object.entries(standardHeaders(method, { taskId }, null)))
    headers[name.toLowerCase()] = value;
  const exchange = send({ method: 'POST', path: '', headers, body: text });
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => exchange.abort(broken('the provider does not answer', null)), timeoutMs);
  try {
    const reply = await exchange.head;
    const { status } = reply;
    if (status === 401 || status === 403 || status === 407) throw broken(`it answered with status ${status}`, status);
    for await (const { message } of readReply(reply, bytesMax)) {
      if (message?.kind !== 'response') continue;
      reply.discard();
      // An error about a request that could not be read has no id.
      if (message.id !== id && (message.id !== null || message.error === undefined))
        throw broken('the provider answered another request than it was asked', status);
      return { response: message, status };
    }
    throw broken('the provider ended its answer without a response', status);
  } finally {
    clearTimeout(timer);
  }
}

/** A failure of the provider that no other provider makes good: the task is its own. */
export const broken = (what: string, status: number | null, cause?: unknown): UpstreamFailure =>
  new UpstreamFailure(what, { status, retryable: false, blame: 'provider', ...(cause === undefined ? {} : { cause }) });

import type { RequestId, ResponseMessage } from '#wire';
import { onlyAnswerTo, type Send } from '#gateway';
import { firstResponse } from '../servers/first-response.ts';
import { MODERN_POST_HEADERS } from '../servers/post-headers.ts';
import { withoutResponse, providerFailure, refuseCredentialStatus } from '../request/provider-failure.ts';
import { standardHeaders } from '../wire/param-headers.ts';

/** A request about a task, with the task's id at its server. */
export interface TaskQuestion {
  readonly method: string;
  readonly id: RequestId;
  /** The id as JSON text. */
  readonly idText: string;
  /** The id of the task at its server. */
  readonly taskId: string;
  /** The whole message, as JSON text. */
  readonly text: string;
}

interface ServerAnswer {
  readonly response: ResponseMessage;
  readonly status: number;
}

/**
 * Posts a request about a task to its server, and reads the response, which gets the id as the request has it.
 * Notifications before the response are dropped. Rejects with UpstreamFailure.
 */
export async function askServer(
  send: Send,
  question: TaskQuestion,
  bytesMax: number,
  timeoutMs?: number,
): Promise<ServerAnswer> {
  const { method, taskId, text } = question;
  const headers: Record<string, string> = { ...MODERN_POST_HEADERS };
  for (const [name, value] of Object.entries(standardHeaders(method, { taskId }, null)))
    headers[name.toLowerCase()] = value;
  const exchange = send({ method: 'POST', path: '', headers, body: text });
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => exchange.abort(providerFailure('the provider does not answer', null)), timeoutMs);
  try {
    const reply = await exchange.head;
    const { status } = reply;
    refuseCredentialStatus(status);
    const response = await firstResponse(reply, bytesMax);
    if (response === null) throw withoutResponse(status);
    const answer = onlyAnswerTo(question, response);
    // An error about a request that the server could not read has no id.
    if (answer === null && (response.id !== null || response.error === undefined))
      throw providerFailure("the id of the provider's response is not the id of the request", status);
    return { response: answer ?? response, status };
  } finally {
    clearTimeout(timer);
  }
}

import type { FastifyRequest } from 'fastify';
import type { GatewayError } from '#errors';
import { dialectOf, toHttpError } from '#http';
import { contextExceeded } from '#wire/replies';
import type { ChatFault } from '../chat/reply/chat-content.ts';

interface ResponseError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/**
 * An error in the form of the Responses API. Codex retries every status except 400 five times, but does not retry a
 * stream that failed for lack of money. So Codex gets a lack of money as a stream.
 */
export function toResponseError(
  error: GatewayError,
  httpRequest: Pick<FastifyRequest, 'id' | 'headers' | 'originalUrl'>,
): ResponseError {
  const { status, headers, body } = toHttpError(error, dialectOf(httpRequest));
  if ((status !== 402 && status !== 424) || !isCodex(httpRequest)) return { status, headers, body };
  const response = { id: `resp_${httpRequest.id}`, object: 'response', status: 'in_progress', output: [] };
  const failed = {
    ...response,
    status: 'failed',
    error: { code: 'insufficient_quota', message: error.message },
  };
  return {
    status: 200,
    headers: { ...headers, 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
    body: eventOf('response.created', 0, response) + eventOf('response.failed', 1, failed),
  };
}

const isCodex = ({ headers: { originator, accept } }: Pick<FastifyRequest, 'headers'>): boolean =>
  typeof originator === 'string' && originator.startsWith('codex') && accept?.includes('text/event-stream') === true;

const eventOf = (type: string, sequence: number, response: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence, response })}\n\n`;

/** The error with the code that shows clients whether a retry can help. */
export function errorOf({ message, type, code }: ChatFault): { readonly code: string; readonly message: string } {
  if (code < 429 && contextExceeded(message) !== null) return { code: 'context_length_exceeded', message };
  if (code === 402 || code === 424) return { code: 'insufficient_quota', message };
  // The same request fails again. The API has no other code for one that a provider refuses.
  if (code === 400 || code === 413 || code === 422) return { code: 'invalid_prompt', message };
  return { code: type === 'rate_limit_exceeded' ? type : 'server_error', message };
}

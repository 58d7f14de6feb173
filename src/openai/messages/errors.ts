import type { FastifyRequest } from 'fastify';
import { eachError, type GatewayError } from '#errors';
import { errorCodeOf, toHttpError } from '#http';
import { ERROR_MESSAGE, foreignError } from '#http/error-schemas';
import { UpstreamFailure } from '#wire';
import { contextExceeded } from '#wire/replies';
import type { ChatFault } from '../chat/reply/chat-content.ts';

interface AnthropicError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

const TYPES = eachError(({ anthropic }) => anthropic);

export const ANTHROPIC_ERROR = foreignError('AnthropicError', 'Anthropic’s API', ['type', 'error'], {
  type: { type: 'string', enum: ['error'] },
  error: {
    type: 'object',
    required: ['type', 'message'],
    properties: {
      type: { type: 'string', description: 'Such as `invalid_request_error`.' },
      message: ERROR_MESSAGE,
    },
  },
  request_id: { type: 'string' },
});

/** Clients of Anthropic's API retry these statuses automatically. */
const RETRIED: ReadonlySet<number> = new Set([408, 409, 429]);

/** An error in the form of Anthropic's API. `x-should-retry: false` tells the client that a retry cannot help. */
export function toAnthropicError(error: GatewayError, { id }: { readonly id: string }): AnthropicError {
  const { status, headers, body } = toHttpError(error);
  const { error: chat, ...more } = body;
  // A provider's own limit is over at some time, whether the provider says when or not.
  const isLimit = error.retryAfterS !== undefined || error.cause instanceof UpstreamFailure;
  const canHelp = status >= 500 || status < 400 || (RETRIED.has(status) && isLimit);
  return {
    status,
    headers: { ...headers, 'request-id': id, ...(canHelp ? {} : { 'x-should-retry': 'false' }) },
    body: {
      type: 'error',
      error: { type: TYPES[error.code], message: status < 429 ? wordsOf(chat.message) : chat.message },
      request_id: id,
      ...more,
    },
  };
}

/** Addresses that Anthropic's API has too. */
const SHARED = /^\/api\/v1\/(?:models|files)(?:[/?]|$)/;

/**
 * The form of Anthropic's API, for its clients at an address that does not exist here or that both APIs have; null for
 * other requests. Its clients always send the version that they speak.
 */
export const anthropicForm = ({ headers, url, is404 }: Pick<FastifyRequest, 'headers' | 'url' | 'is404'>) =>
  headers['anthropic-version'] !== undefined && (is404 || SHARED.test(url)) ? toAnthropicError : null;

export const toAnthropicFault = ({ message, type, code }: ChatFault) => ({ type: typeOf(type, code), message });

function typeOf(type: string, status: number): string {
  const errorCode = errorCodeOf(type, status);
  return errorCode === null ? 'api_error' : TYPES[errorCode];
}

/**
 * Rewrites the refusal of a prompt that is too long as a sentence that coding agents know. When they read it, they
 * shorten their conversation, or ask for a shorter answer.
 */
function wordsOf(message: string): string {
  const exceeded = contextExceeded(message);
  if (exceeded === null) return message;
  const { prompt, answer, maximum } = exceeded;
  if (maximum === null) return `prompt is too long. ${message}`;
  if (prompt !== null && answer !== null && prompt <= maximum)
    return `input length and \`max_tokens\` exceed context limit: ${prompt} + ${answer} > ${maximum}`;
  // Without a number from the provider, the prompt is taken to be one token longer than the maximum.
  return `prompt is too long: ${Math.max(prompt ?? 0, maximum + 1)} tokens > ${maximum} maximum`;
}

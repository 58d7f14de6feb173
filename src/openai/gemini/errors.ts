import type { FastifyRequest } from 'fastify';
import { eachError, type GatewayError } from '#errors';
import { errorCodeOf, toHttpError } from '#http';
import { ERROR_MESSAGE, foreignError } from '#http/error-schemas';
import type { ChatFault } from '../chat/reply/chat-content.ts';

interface GeminiError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

export const GEMINI_ERROR = foreignError('GeminiError', 'Google’s APIs', ['error'], {
  error: {
    title: 'GeminiErrorDetail',
    type: 'object',
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'integer', description: 'The HTTP status again.' },
      message: ERROR_MESSAGE,
      status: { type: 'string', description: 'A canonical code such as `INVALID_ARGUMENT`.' },
      details: {
        type: 'array',
        items: { type: 'object', additionalProperties: true },
        description: 'The name of the error here (`ErrorInfo`), the request, and when a repeat can succeed.',
      },
    },
  },
});

const CANONICAL = eachError(({ canonical }) => canonical);
const TYPE = 'type.googleapis.com/google.rpc.';

/**
 * An error in the form of Google's APIs. `details` have the gateway's own name of the error and, as far as it is
 * known, when a repeat can succeed: clients such as gemini-cli wait for that long.
 */
export function toGeminiError(error: GatewayError, { id }: { readonly id: string }): GeminiError {
  const { status, headers, body } = toHttpError(error);
  const {
    error: { message, type, param },
    ...more
  } = body;
  const { retryAfterS } = error;
  const info = {
    '@type': `${TYPE}ErrorInfo`,
    reason: type.toUpperCase(),
    domain: 'tollgate',
    ...(param === null ? {} : { metadata: { param } }),
  };
  const details = [
    info,
    { '@type': `${TYPE}RequestInfo`, requestId: id },
    ...(retryAfterS === undefined
      ? []
      : [{ '@type': `${TYPE}RetryInfo`, retryDelay: `${Math.max(1, Math.ceil(retryAfterS))}s` }]),
  ];
  return {
    status,
    headers: { ...headers, 'request-id': id },
    body: { error: { code: status, message, status: CANONICAL[error.code], details }, ...more },
  };
}

export function toGeminiFault({ message, type, code }: ChatFault): object {
  const errorCode = errorCodeOf(type, code);
  return { code, message, status: errorCode === null ? 'INTERNAL' : CANONICAL[errorCode] };
}

/**
 * The form of Google's APIs, for its clients at an address that does not exist here; null for other requests. Its
 * clients send their key in a header of their own.
 */
export const geminiForm = ({ headers, is404 }: Pick<FastifyRequest, 'headers' | 'is404'>) =>
  is404 && headers['x-goog-api-key'] !== undefined ? toGeminiError : null;

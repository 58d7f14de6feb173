import type { JsonObject } from '#wire';
import { isRecord } from './json.ts';

/** The request cannot be made of the package, or the client asked for something that the interface does not have. */
export class RequestFault extends Error {
  override readonly name = 'RequestFault';
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;
  constructor(
    message: string,
    { status = 400, param = null, code = null }: { status?: number; param?: string | null; code?: string | null } = {},
  ) {
    super(message);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

/** An error as the chat API has it: a status, headers and a body. */
interface ErrorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: JsonObject };
}

const MESSAGE_CHARS_MAX = 2_048;

/** Errors of the AI SDK that the consumer's request causes. They begin with `AI_`, whatever copy of the SDK threw. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_TooManyEmbeddingValuesForCallError',
  'AI_UnsupportedFunctionalityError',
]);

/** The operator's settings are wrong. As with any provider whose key is refused, that is its own fault. */
const OF_THE_SETTINGS: ReadonlySet<string> = new Set(['AI_LoadAPIKeyError', 'AI_LoadSettingError']);

/**
 * The reply for anything that a package threw. The status of an answer of the vendor passes, and so does its pause
 * before another try. An error without an answer is 502, which the gateway takes as a failure of the provider.
 */
export function toErrorReply(thrown: unknown): ErrorReply {
  if (thrown instanceof RequestFault)
    return reply(thrown.status, thrown.message, { param: thrown.param, ...(thrown.code && { code: thrown.code }) });
  const { name, message, statusCode, responseHeaders, data, lastError } = isRecord(thrown) ? thrown : {};
  // Some packages try again themselves, and throw what they met last.
  if (name === 'AI_RetryError' && lastError !== undefined) return toErrorReply(lastError);
  const text = typeof message === 'string' && message !== '' ? message : textOf(thrown);
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode <= 599)
    return reply(statusCode, text, codesOf(data), retryAfter(responseHeaders));
  if (name === 'AI_NoSuchModelError') return reply(404, text, { code: 'model_not_found' });
  if (OF_THE_REQUEST.has(String(name))) return reply(400, text, { code: 'unsupported' });
  if (OF_THE_SETTINGS.has(String(name))) return reply(401, text, { code: 'invalid_api_key' });
  return reply(502, text, { code: 'provider_failed' });
}

const textOf = (thrown: unknown): string =>
  typeof thrown === 'string' && thrown !== '' ? thrown : 'the package failed without a message';

function reply(
  status: number,
  message: string,
  more: JsonObject,
  headers: Readonly<Record<string, string>> = {},
): ErrorReply {
  const type = status < 500 ? 'invalid_request_error' : 'api_error';
  return { status, headers, body: { error: { message: message.slice(0, MESSAGE_CHARS_MAX), type, ...more } } };
}

/** The vendor's own code, such as `context_length_exceeded`, where its error has one. */
function codesOf(data: unknown): JsonObject {
  const error = isRecord(data) && isRecord(data['error']) ? data['error'] : isRecord(data) ? data : {};
  const { code, param, type } = error;
  return {
    ...(typeof type === 'string' ? { type } : {}),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(typeof param === 'string' ? { param } : {}),
  };
}

function retryAfter(headers: unknown): Readonly<Record<string, string>> {
  const pause = isRecord(headers) ? headers['retry-after'] : undefined;
  return typeof pause === 'string' && /^[\x20-\x7e]{1,64}$/.test(pause) ? { 'retry-after': pause } : {};
}

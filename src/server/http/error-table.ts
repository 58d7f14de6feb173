import { eachError, type ErrorCode, type GatewayError } from '#errors';

/**
 * HTTP status and `error.type` of each error code, for chat, models, keys and account: `{error: {message, type, code,
 * param}}`. `code` in the body is the HTTP status, or a word in the dialect of OpenAI.
 */
export const HTTP_ERRORS = eachError(({ status, type }, code) => ({ status, type: type ?? code }));

/** The members that x402 clients read first in a 402. An error without payment terms has an empty `accepts`. */
const NO_TERMS = { x402Version: 2, accepts: [] } as const;

interface HttpErrorBody<Code> {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly code: Code;
    readonly param: string | null;
  };
}

interface HttpError<Code> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: HttpErrorBody<Code>;
}

/**
 * A GatewayError as an HTTP response. The caller must turn any other error into `internal` first. In the dialect of
 * OpenAI, `code` is the provider's own code if there is one, else the name of the error.
 */
export function toHttpError(error: GatewayError, dialect?: 'own'): HttpError<number>;
export function toHttpError(error: GatewayError, dialect: Dialect): HttpError<number | string>;
export function toHttpError(error: GatewayError, dialect: Dialect = 'own'): HttpError<number | string> {
  const { status, type } = HTTP_ERRORS[error.code];
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterS !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterS)));
  return {
    status,
    headers,
    body: {
      ...(status === 402 ? NO_TERMS : null),
      ...error.body,
      error: {
        message: error.message,
        type,
        code: dialect === 'own' ? status : (error.providerCode ?? error.code),
        param: error.param ?? null,
      },
    },
  };
}

/** The error with this `type` and this status; null for none. No two errors have both in common. */
export const errorCodeOf = (type: string, status: number): ErrorCode | null =>
  (Object.keys(HTTP_ERRORS) as ErrorCode[]).find(
    (code) => HTTP_ERRORS[code].type === type && HTTP_ERRORS[code].status === status,
  ) ?? null;

/** An error whose `code` is a status, in another dialect. */
export const inDialect = <E extends { readonly type: string; readonly code: number }>(
  error: E,
  dialect: Dialect,
): Omit<E, 'code'> & { readonly code: number | string | null } =>
  dialect === 'own' ? error : { ...error, code: errorCodeOf(error.type, error.code) };

/**
 * The dialect of the addresses that clients of OpenAI's API use. `openai` is spoken below `/v1`, for clients that read
 * OpenAI's API strictly: the `code` of an error is a word or null, and a stream has its usage in a chunk of its own, if
 * the client asked for it. `own` is spoken below `/api/v1`: the `code` is the HTTP status, and the last chunk of a
 * stream always has the usage.
 */
export type Dialect = 'openai' | 'own';

/** The prefix of the addresses of the `openai` dialect. The server answers them like those below `/api/v1`. */
export const STRICT_PREFIX = '/v1/';

/** `originalUrl`: the address as the client wrote it. */
export const dialectOf = ({ originalUrl }: { readonly originalUrl: string }): Dialect =>
  originalUrl.startsWith(STRICT_PREFIX) ? 'openai' : 'own';

/** A path without slashes at its end. A pattern for them would take a second for a path of many. */
export function withoutEndSlashes(path: string): string {
  let end = path.length;
  while (path.endsWith('/', end)) end -= 1;
  return path.slice(0, end);
}

import { eachError, ERROR_CODES, type ErrorCode, GatewayError } from '#errors';
import { HTTP_ERRORS, toHttpError, toGatewayError } from '#http';
import { isObject, type JsonObject } from '#wire';
import type { JsonRpcError } from '#json-rpc';

export const CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
} as const;

/**
 * For each error code of the gateway: the code of the JSON-RPC error, which is the same in MCP, and the HTTP status if
 * the error is the whole reply.
 */
export const RPC_ERRORS = eachError(({ jsonRpc: code, rpcStatus: status = 200 }) => ({ code, status }));

/** HTTP statuses that are passed on from a route's reply to the reply to a single request. */
export const KEPT_STATUSES: ReadonlySet<number> = new Set(Object.values(RPC_ERRORS).map(({ status }) => status));

export interface RpcFault {
  readonly error: JsonRpcError;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Converts any thrown value to a JSON-RPC error. `data` has the gateway's error code, the parameter, when to retry, and
 * the HTTP status that other routes give.
 */
export function toRpcFault(thrown: unknown): RpcFault {
  const known = toGatewayError(thrown);
  const { param, retryAfterS, message } = known;
  const { status, headers, body } = toHttpError(known);
  return faultOf(
    known.code,
    message,
    { param, retryAfterS: retryAfterS === undefined ? undefined : Math.max(1, Math.ceil(retryAfterS)), status },
    headers,
    moreOf(status, { ...body }),
  );
}

/** The members of an x402 body with the payment terms. */
const TERMS = ['x402Version', 'accepts', 'resource', 'extensions'] as const;

/** The members beside `error` that say how the call can be made: by a payment, or once a person has accepted it. */
function moreOf(status: number, body: JsonObject): JsonObject {
  const names: readonly string[] = status === 402 ? TERMS : ['approval'];
  return Object.fromEntries(names.filter((name) => Object.hasOwn(body, name)).map((name) => [name, body[name]]));
}

/**
 * Converts the error body of an HTTP route, `{error: {message, type, code, param}}`, to a JSON-RPC error. For a body of
 * another form only the status counts.
 */
export function fromHttpError(status: number, headers: Readonly<Record<string, string>>, text: string): RpcFault {
  const body = parse(text);
  const error = isObject(body['error']) ? body['error'] : body;
  const code = codeOf(status, [error['type'], error['code']]);
  const message =
    typeof error['message'] === 'string' ? error['message'] : `The endpoint answered with HTTP status ${status}`;
  const param = typeof error['param'] === 'string' ? error['param'] : undefined;
  const seconds = Number(headers['retry-after']);
  return faultOf(
    code,
    message,
    { param, retryAfterS: Number.isFinite(seconds) && seconds > 0 ? seconds : undefined, status },
    headers,
    moreOf(status, body),
  );
}

interface ErrorFacts {
  readonly param: string | undefined;
  readonly retryAfterS: number | undefined;
  readonly status: number;
}

function faultOf(
  type: ErrorCode,
  message: string,
  { param, retryAfterS, status }: ErrorFacts,
  headers: Readonly<Record<string, string>>,
  terms: JsonObject = {},
): RpcFault {
  const { code, status: own } = RPC_ERRORS[type];
  const data = {
    type,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterS === undefined ? {} : { retry_after_s: retryAfterS }),
    status,
    ...terms,
  };
  return { error: { code, message, data }, status: own, headers };
}

/** Finds the error code by type and then by status, because two codes share a type on HTTP. */
function codeOf(status: number, words: readonly unknown[]): ErrorCode {
  const all: readonly ErrorCode[] = ERROR_CODES;
  const codes = all.filter((code) => words.includes(HTTP_ERRORS[code].type));
  return (
    codes.find((code) => HTTP_ERRORS[code].status === status) ??
    codes[0] ??
    all.find((code) => HTTP_ERRORS[code].status === status) ??
    (status < 500 ? 'invalid_request' : 'internal')
  );
}

function parse(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

export function badParams(message: string, param: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

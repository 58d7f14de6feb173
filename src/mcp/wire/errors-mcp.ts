import type { ErrorCode, GatewayError } from '#errors';
import { errorText } from '#json-rpc';
import { NotUtf8 } from '#wire';
import { toGatewayError } from '#http';
import { ERROR } from './revisions.ts';

/**
 * The error table of MCP: the code of the JSON-RPC error, and the HTTP status for an error that is the whole reply.
 * Errors without a code in JSON-RPC get one of the gateway's, −32010 to −32019. The status in a session is that of
 * `statusInSession`.
 */
export const MCP_ERRORS = {
  invalid_request: { code: ERROR.invalidParams, status: 400 },
  unauthorized: { code: -32010, status: 401 },
  insufficient_balance: { code: -32011, status: 402 },
  // Not 202, because to an MCP client it means that no answer comes.
  payment_pending: { code: -32019, status: 503 },
  payment_expired: { code: -32011, status: 402 },
  payment_verification_failed: { code: -32011, status: 402 },
  insufficient_payment: { code: -32011, status: 402 },
  escrow_not_setup: { code: -32011, status: 402 },
  permission_denied: { code: -32012, status: 403 },
  invalid_model: { code: -32013, status: 404 },
  not_found: { code: -32013, status: 404 },
  expired: { code: -32013, status: 404 },
  method_not_allowed: { code: ERROR.invalidParams, status: 405 },
  idempotency_conflict: { code: -32014, status: 409 },
  quote_expired: { code: -32014, status: 409 },
  quote_used: { code: -32014, status: 409 },
  quote_mismatch: { code: -32014, status: 409 },
  request_timeout: { code: -32015, status: 408 },
  payload_too_large: { code: -32015, status: 413 },
  unprocessable: { code: ERROR.invalidParams, status: 422 },
  content_policy: { code: ERROR.invalidParams, status: 422 },
  rate_limit_exceeded: { code: -32016, status: 429 },
  overloaded: { code: -32017, status: 503 },
  provider_unavailable: { code: -32017, status: 502 },
  reply_cut: { code: -32017, status: 502 },
  no_provider_healthy: { code: -32017, status: 503 },
  service_unavailable: { code: -32018, status: 503 },
  internal: { code: ERROR.internal, status: 500 },
} as const satisfies Record<ErrorCode, { code: number; status: number }>;

export interface McpErrorReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * Any thrown value as a JSON-RPC error. `data` has the gateway's error code, the parameter, the seconds until a retry,
 * and the members of `more`.
 */
export function toMcpError(
  thrown: unknown,
  idText: string,
  more: Readonly<Record<string, unknown>> = {},
): McpErrorReply {
  const error = toGatewayError(thrown);
  const { status } = MCP_ERRORS[error.code];
  const code = error instanceof NotUtf8 ? ERROR.parse : MCP_ERRORS[error.code].code;
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterS !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(error.retryAfterS)));
  return {
    status,
    headers,
    text: errorText(idText, { code, message: error.message, data: { ...dataOf(error), ...more } }),
  };
}

/**
 * The HTTP status of a refused request with an id in a session. Clients take a status other than 200 for a broken
 * connection, and lose the error and every request that still runs. They act on 401, and on 402 with payment terms.
 */
export const statusInSession = ({ status, headers }: Pick<McpErrorReply, 'status' | 'headers'>): number =>
  status === 401 || (status === 402 && headers['payment-required'] !== undefined) ? status : 200;

function dataOf({ code, param, retryAfterS }: GatewayError): Record<string, unknown> {
  return {
    type: code,
    ...(param === undefined ? {} : { param }),
    ...(retryAfterS === undefined ? {} : retryIn(Math.max(1, Math.ceil(retryAfterS)))),
  };
}

/** Clients in sessions do not see the header `Retry-After`, and some look for its name here. */
const retryIn = (seconds: number) => ({ retry_after_s: seconds, retry_after: seconds });

/** The cause of an error that is the gateway's own, for the operator; null for errors of clients and providers. */
export function worthTelling(thrown: unknown): unknown {
  const { code, cause } = toGatewayError(thrown);
  if (code === 'internal') return cause ?? thrown;
  return code === 'service_unavailable' ? (cause ?? null) : null;
}

/** Text from outside, for use in a message: escaped as a JSON string, and cut to 100 characters. */
export const quote = (text: string | null) =>
  JSON.stringify(text === null || text.length <= 100 ? text : `${text.slice(0, 100)}…`);

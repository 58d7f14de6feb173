import { dataInBody, eachError, type GatewayError } from '#errors';
import { errorText } from '#json-rpc';
import { NotUtf8 } from '#wire';
import { toGatewayError } from '#http';
import { ERROR } from './revisions.ts';

/**
 * The error table of MCP: the code of the JSON-RPC error, and the HTTP status for an error that is the whole reply.
 * Errors without a code in JSON-RPC get one of the gateway's, −32010 to −32019. The status in a session is that of
 * `statusInSession`.
 */
export const MCP_ERRORS = eachError(({ jsonRpc: code, status, protocolStatus = status }) => ({
  code,
  status: protocolStatus,
}));

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

function dataOf(error: GatewayError): Record<string, unknown> {
  const { code, param, retryAfterS } = error;
  return {
    type: code,
    ...dataInBody(error),
    // A call is made the same way for all protocols. In a message of MCP, `name` is what chat calls `model`.
    ...(param === undefined ? {} : { param: param === 'model' ? 'name' : param }),
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

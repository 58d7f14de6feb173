import type { UpstreamFailure } from '#wire';
import type { EndFrame } from '#billing';
import type { Call } from '#gateway';

/** The error type for a tool result with `isError`, from the MCP semantic conventions. */
const TOOL_ERROR = 'tool_error';
/** The error type of the conventions for errors without their own type. */
const OTHER_ERROR = '_OTHER';

const ANSWERED = 'error ';
const CODE = /^-?\d{1,9}$/;

/** Codes that JSON-RPC and MCP define. Servers may invent others, and each of those would add a series. */
const NAMED_CODES: ReadonlySet<string> = new Set(
  [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32021, -32022, -32042].map(String),
);

/**
 * The `error.type` of a complete reply that reports a failure: a JSON-RPC code, or `tool_error`. null for every other
 * reply. It comes from the finish reason of a tool's reply: `isError`, or `error` and the code.
 */
export function answerErrorOf({ primitive }: Pick<Call, 'primitive'>, end: EndFrame | null): string | null {
  const reason = end?.detail['finishReason'];
  if (primitive !== 'tool' || typeof reason !== 'string') return null;
  if (reason === 'isError') return TOOL_ERROR;
  if (!reason.startsWith(ANSWERED)) return null;
  const code = reason.slice(ANSWERED.length);
  return CODE.test(code) ? code : OTHER_ERROR;
}

/** The error type if it is a JSON-RPC code; null otherwise. */
export const codeOf = (type: string): string | null => (CODE.test(type) ? type : null);

/** The error type as a metric label with few possible values. */
export const labelOfError = (type: string): string => (CODE.test(type) && !NAMED_CODES.has(type) ? OTHER_ERROR : type);

const USUAL_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]);

/** The error type of a failed attempt, with few possible values: an HTTP status, or what happened to the connection. */
export function labelOfFailure({ status, unsent }: Pick<UpstreamFailure, 'status' | 'unsent'>): string {
  if (status === null) return unsent ? 'unreachable' : 'broken';
  return USUAL_STATUSES.has(status) ? String(status) : OTHER_ERROR;
}

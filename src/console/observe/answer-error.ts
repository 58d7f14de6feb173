/* The `error.type` of calls, for log, metrics, trace and record. It loads nothing, because commands use it. */

/** The error type for a tool result with `isError`, from the MCP semantic conventions. */
const TOOL_ERROR = 'tool_error';
/** The error type of the conventions for errors without their own type. */
export const OTHER_ERROR = '_OTHER';

const ANSWERED = 'error ';
const CODE = /^-?\d{1,9}$/;

/** Codes that JSON-RPC and MCP define. Servers may invent others, and each of those would add a series. */
const NAMED_CODES: ReadonlySet<string> = new Set(
  [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32020, -32021, -32022, -32042].map(String),
);

/** States of tasks whose agent did not do the work. */
const TASK_ERRORS: Readonly<Record<string, string>> = { failed: 'task_failed', rejected: 'task_rejected' };

/**
 * The `error.type` of a complete reply that reports a failure: a JSON-RPC code, `tool_error`, or how the task of an
 * agent ended. null for every other reply. It comes from the finish reason of a reply of a tool (`isError`) or an agent
 * (the state of its task), or from `error` and the code.
 */
export function answerErrorOf(primitive: unknown, reason: unknown): string | null {
  if ((primitive !== 'tool' && primitive !== 'agent') || typeof reason !== 'string') return null;
  if (primitive === 'tool' && reason === 'isError') return TOOL_ERROR;
  if (primitive === 'agent' && Object.hasOwn(TASK_ERRORS, reason)) return TASK_ERRORS[reason]!;
  if (!reason.startsWith(ANSWERED)) return null;
  const code = reason.slice(ANSWERED.length);
  return CODE.test(code) ? code : OTHER_ERROR;
}

/** The error type if it is a JSON-RPC code; null otherwise. */
export const codeOf = (type: string): string | null => (CODE.test(type) ? type : null);

/** The error type as a metric label with few possible values. */
export const labelOfError = (type: string): string => (CODE.test(type) && !NAMED_CODES.has(type) ? OTHER_ERROR : type);

/* How a call ended, by its record: the one meaning of "failed" in figures, lists, metrics and pages. It loads nothing,
   because commands and threads use it. */

/**
 * Whether a call failed: it is over, and its consumer paid nothing, because nothing was served. Its lock was released
 * or has expired, or it was settled as `free` (the answer reported a failure, or nothing arrived). A call that is cut
 * and paid for has not failed. Nor has one that costs nothing by its price, one that another call continues
 * (`continued`), or one that runs. The lock of a run is always released, because the calls under it are charged:
 * `isRun`: it has failed if its outcome says so.
 */
export function hasFailed(state: string, outcome: unknown, isRun = false): boolean {
  if (isRun && state === 'released') return outcome === 'failed';
  return (
    outcome !== 'continued' &&
    (state === 'released' || state === 'expired' || (state === 'settled' && outcome === 'free'))
  );
}

/** The error type for a tool result with `isError`, from the MCP semantic conventions. */
const TOOL_ERROR = 'tool_error';
/** The error type of the conventions for errors without their own type. */
export const OTHER_ERROR = '_OTHER';

const ANSWERED = 'error ';
const CODE = /^-?\d{1,9}$/;

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

type RecordFields = Readonly<Record<string, unknown>>;

/**
 * The code of the error that the client of a call got: that of a cut, of an answer that reports a failure,
 * `client_gone` if the client left before its answer, else that of the error. null without an error. `call` and `run`
 * are the parsed `lock_detail` and `detail` of its lock.
 */
export function errorCodeOf(state: string, call: RecordFields, run: RecordFields): string | null {
  const cut = run['cut'] as { readonly code: string; readonly reason: string } | undefined;
  if (cut !== undefined && cut.reason !== 'cancelled') return cut.code;
  if (run['errorCode'] === undefined) {
    const answered = answerErrorOf(call['primitive'], run['finishReason']);
    if (answered !== null) return answered;
  }
  if (run['clientGone'] === true && (cut !== undefined || state === 'released')) return 'client_gone';
  return typeof run['errorCode'] === 'string' ? run['errorCode'] : null;
}

/** Codes of failures that no error names. */
const EXPIRED = 'expired';
const EMPTY = 'empty_answer';
const UNKNOWN = 'unknown';

/** Why a call failed, in one code: its error, or what else ended it. '' for a call that has not failed. */
export function causeOf(state: string, call: RecordFields, run: RecordFields): string {
  if (!hasFailed(state, run['outcome'], call['run'] === true)) return '';
  return errorCodeOf(state, call, run) ?? (state === 'expired' ? EXPIRED : state === 'settled' ? EMPTY : UNKNOWN);
}

/** The gateway answered with an error, or there was no answer (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  /** The error's type, such as `insufficient_balance`. `unreachable` if there was no answer. */
  readonly type: string;
  /** The field that is wrong. */
  readonly param: string | null;
  /** Id of the request, for the operator. */
  readonly requestId: string | null;
  /** Whose budget refused the call: `key`, `member`, `account` or `operator`. null if it was not a budget. */
  readonly budget: string | null;

  constructor(
    message: string,
    facts: {
      readonly status: number;
      readonly type: string;
      readonly param?: string | null;
      readonly requestId?: string | null;
      readonly budget?: string | null;
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause: facts.cause });
    this.name = 'ApiError';
    this.status = facts.status;
    this.type = facts.type;
    this.param = facts.param ?? null;
    this.requestId = facts.requestId ?? null;
    this.budget = facts.budget ?? null;
  }
}

/** Ignores the error of a sign-out without a session. Throws every other error. */
export function passIfSignedOut(error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 401) throw error;
}

/** Whether the call needs more money than the balance. */
export const isTooMuch = (error: unknown): boolean =>
  error instanceof ApiError && error.type === 'insufficient_balance';

const HELP: Readonly<Record<string, string>> = {
  unreachable: 'Check the connection, then try again.',
  rate_limit_exceeded: 'Wait a moment, then try again.',
  service_unavailable: 'Try again in a few seconds.',
  overloaded: 'Wait a moment, then try again, or choose another provider.',
  provider_unavailable: 'Try again, or choose another provider.',
  provider_error: 'Try again, or choose another provider.',
};

/** Describes an error in one sentence, with advice for the reader. */
export function explain(error: unknown): { readonly sentence: string; readonly help: string | null } {
  if (error instanceof ApiError) {
    // The message itself says who can raise the budget.
    if (error.budget !== null) return { sentence: withStop(error.message), help: null };
    const help =
      HELP[error.type] ??
      (error.status === 401
        ? 'Sign in, then try again.'
        : error.status >= 500
          ? 'Try again. If it stays, tell the operator the id below.'
          : null);
    return { sentence: withStop(error.message), help };
  }
  return { sentence: withStop(error instanceof Error ? error.message : String(error)), help: null };
}

const withStop = (text: string) => (/[.!?…]$/.test(text) ? text : `${text}.`);

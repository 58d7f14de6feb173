/** The gateway's answer was an error, or there was no answer (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  /** The error's name in the gateway's table, such as `insufficient_balance`; `unreachable` without an answer. */
  readonly type: string;
  /** The field that is at fault. */
  readonly param: string | null;
  /** Of the request, for the operator. */
  readonly requestId: string | null;
  /** Whose budget refused the call: `key`, `member`, `account` or `operator`; null where none did. */
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

/** For a sign-out: without a session it has nothing left to do. Throws every other error. */
export function passIfSignedOut(error: unknown): void {
  if (!(error instanceof ApiError) || error.status !== 401) throw error;
}

/** More money was asked for than there is. */
export const isTooMuch = (error: unknown): boolean =>
  error instanceof ApiError && error.type === 'insufficient_balance';

const HELP: Readonly<Record<string, string>> = {
  unreachable: 'Check the connection, then try again.',
  insufficient_balance: 'Add money on the balance page of the dashboard, then try again.',
  rate_limit_exceeded: 'Wait a moment, then try again.',
  service_unavailable: 'Try again in a few seconds.',
  provider_unavailable: 'Try again, or choose another provider.',
  provider_error: 'Try again, or choose another provider.',
};

/** An error as one sentence, and what the reader can do about it. */
export function explain(error: unknown): { readonly sentence: string; readonly help: string | null } {
  if (error instanceof ApiError) {
    // Its sentence says who raises it.
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

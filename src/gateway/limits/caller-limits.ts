import type { Budget } from '#billing';

/** A budget in which the calls of a caller count. */
export interface CallerBudget extends Budget {
  /** The owner: the key, one member of the account, the whole account, or the operator, who sets it for the account. */
  readonly of: 'key' | 'member' | 'account' | 'operator';
  /** When it starts again from zero, in epoch milliseconds; null for never. */
  readonly resetsAt: number | null;
}

/** Rates that were set for an account. */
export interface AccountRates extends Rates {
  /** The operator set its rate of requests, which replaces the gateway's own rate for accounts. */
  readonly requestsByOperator: boolean;
}

/** Requests and tokens per minute; null for the gateway's own rate. */
export interface Rates {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

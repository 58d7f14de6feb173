import type { Budget } from '#billing';

/** A budget that the calls of a caller count in. */
export interface CallerBudget extends Budget {
  /** Whose: the key's, of one member of the account, of all the account, or the operator's for the account. */
  readonly of: 'key' | 'member' | 'account' | 'operator';
  /** When it starts anew, epoch milliseconds; null is never. */
  readonly resetsAt: number | null;
}

/** Requests and tokens per minute; null is the gateway's own rate. */
export interface Rates {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

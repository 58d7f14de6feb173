import type { AccountRates, Caller, CallerBudget, Rates } from '#gateway';
import { budgetAt, type SpendLimit } from '../accounts/spend-period.ts';
import { budgetName, ownerOfLimits, type LimitsOf } from './account-limits.ts';

/** The budgets and rates of a caller, and the time until which they are valid. */
export interface CallerLimits {
  readonly parts: Pick<Caller, 'budgets' | 'rates'>;
  /** Epoch milliseconds of the earliest end of a period. Infinity if no period ends. */
  readonly until: number;
}

type LimitedKey = SpendLimit & Rates & { readonly hash: string };

/** Combines the limits of a key with those of its account and its member (`ofAccount`). */
export function callerLimits(
  account: string,
  key: LimitedKey | null,
  ofAccount: readonly LimitsOf[],
  at: number,
): CallerLimits {
  const budgets: CallerBudget[] = [];
  if (key !== null) budgets.push({ of: 'key', ...budgetAt(key.hash, key, at) });
  let shared: AccountRates | null = null;
  for (const { subject, limits } of ofAccount) {
    const of = ownerOfLimits(subject);
    const name = budgetName(account, subject);
    for (const rule of limits.budgets) budgets.push({ of, ...budgetAt(name, rule, at) });
    if (of !== 'member') shared = tighter(shared, limits, of === 'operator');
  }
  const own = key === null || isUnset(key) ? null : key;
  const until = budgets.reduce((least, { resetsAt }) => Math.min(least, resetsAt ?? Infinity), Infinity);
  return {
    parts: {
      ...(budgets.length === 0 ? {} : { budgets }),
      ...(own === null && shared === null ? {} : { rates: { key: own && ratesOf(own), account: shared } }),
    },
    until,
  };
}

const isUnset = ({ requestsPerMinute, tokensPerMinute }: Rates): boolean =>
  requestsPerMinute === null && tokensPerMinute === null;

const ratesOf = ({ requestsPerMinute, tokensPerMinute }: Rates): Rates => ({ requestsPerMinute, tokensPerMinute });

/** The lower value of each rate. null if neither has a rate. */
function tighter(one: AccountRates | null, other: Rates, byOperator: boolean): AccountRates | null {
  if (isUnset(other)) return one;
  const requestsByOperator = one?.requestsByOperator === true || (byOperator && other.requestsPerMinute !== null);
  if (one === null) return { ...ratesOf(other), requestsByOperator };
  const least = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : Math.min(a, b));
  return {
    requestsPerMinute: least(one.requestsPerMinute, other.requestsPerMinute),
    tokensPerMinute: least(one.tokensPerMinute, other.tokensPerMinute),
    requestsByOperator,
  };
}

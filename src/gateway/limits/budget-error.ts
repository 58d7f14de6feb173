import { GatewayError } from '#wire';
import { formatUsd, type LockResult } from '#billing';
import type { Caller } from '../call.ts';
import type { CallerBudget } from './caller-limits.ts';

type FullBudget = Extract<LockResult, { reason: 'budget_exceeded' }>['budget'];

const NAMES: Readonly<Record<CallerBudget['of'], string>> = {
  key: 'Spending limit of this API key',
  member: 'Budget of this member',
  account: 'Budget of the account',
  operator: "The operator's budget for the account",
};

/** Says who can raise each budget. A payment does not help here. */
const RAISED_BY: Readonly<Record<CallerBudget['of'], string>> = {
  key: 'Whoever manages the keys of the account raises it',
  member: 'An admin or owner of the organisation raises it',
  account: 'An admin or owner of the account raises it',
  operator: 'The operator alone raises it',
};

/**
 * The error for a lock that exceeds a budget of the caller. `needed` completes the message: `estimated cost: 0.01
 * USDC`. On HTTP wires the body has `budget` with the same facts.
 */
export function budgetError(
  { budgets = [] }: Pick<Caller, 'budgets'>,
  { id, limit, spent, locked }: FullBudget,
  needed: string,
): GatewayError {
  const { of, resetsAt } = budgets.find((budget) => budget.id === id) ?? { of: 'key', resetsAt: null };
  const resets = resetsAt === null ? null : new Date(resetsAt).toISOString();
  const used = `${formatUsd(spent)} of ${formatUsd(limit)} USDC are spent and ${formatUsd(locked)} locked by running calls`;
  const anew = resets === null ? 'it is not reset by itself' : `it is reset at ${resets}`;
  return new GatewayError(
    'insufficient_balance',
    `${NAMES[of]} is too low for ${needed}. ${used}; ${anew}. ${RAISED_BY[of]}`,
    {
      body: {
        budget: {
          of,
          limit_usd: formatUsd(limit),
          spent_usd: formatUsd(spent),
          locked_usd: formatUsd(locked),
          resets_at: resets,
        },
      },
    },
  );
}

import type { MicroUsd } from '#billing';
import { LIMIT_RESETS, type CarriedUse, type LimitReset } from '../accounts/spend-period.ts';
import type { Rates } from '#gateway';

/** The most that somebody may spend in each reset period. */
export interface BudgetRule {
  readonly limit: MicroUsd;
  /** null is never. */
  readonly limitReset: LimitReset | null;
  /** It refuses nothing, and is told of alone. */
  readonly limitSoft: boolean;
  /** Percentages of the limit that are told of when they are spent. */
  readonly notify: readonly number[];
  /** As that of a SpendLimit; nothing that is set. */
  readonly carried?: CarriedUse;
}

/** Limits beyond those of single keys. */
export interface AccountLimits extends Rates {
  /** At most one of each reset. */
  readonly budgets: readonly BudgetRule[];
}

/**
 * The limits that the owner set for all of the account, those that the operator set for it, or those of a member, by
 * its account, for what that one's keys spend.
 */
export type LimitsSubject = 'account' | 'operator' | (string & {});

/** Whose budgets and rates these are, as callers are told. */
export function ownerOfLimits(subject: LimitsSubject): 'account' | 'operator' | 'member' {
  if (subject === 'account') return 'account';
  return subject === 'operator' ? 'operator' : 'member';
}

export interface LimitsOf {
  readonly subject: LimitsSubject;
  readonly limits: AccountLimits;
}

export const NO_LIMITS: AccountLimits = { budgets: [], requestsPerMinute: null, tokensPerMinute: null };

/** The percentages that are told of where nobody says which. */
export const USUAL_PERCENTAGES: readonly number[] = [50, 80, 100];

/** The ledger's name of a budget, before the period: see budgetAt. Accounts have no `|` in their names. */
export function budgetName(account: string, subject: LimitsSubject): string {
  const of = ownerOfLimits(subject);
  return of === 'member' ? `member:${account}|${subject}` : `${of}:${account}`;
}

export const budgetsToText = (budgets: readonly BudgetRule[]): string =>
  JSON.stringify(
    budgets.map(({ limit, limitReset, limitSoft, notify }) => ({
      limit: String(limit),
      reset: limitReset,
      soft: limitSoft,
      notify,
    })),
  );

export function budgetsFromText(text: string): readonly BudgetRule[] {
  const rules = JSON.parse(text) as readonly {
    readonly limit: string;
    readonly reset: string | null;
    readonly soft: boolean;
    readonly notify: readonly number[];
  }[];
  return rules.map(({ limit, reset, soft, notify }) => ({
    limit: BigInt(limit),
    limitReset: LIMIT_RESETS.find((known) => known === reset) ?? null,
    limitSoft: soft,
    notify,
  }));
}

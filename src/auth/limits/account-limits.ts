import type { MicroUsd } from '#billing';
import { LIMIT_RESETS, type CarriedUse, type LimitReset } from '../accounts/spend-period.ts';
import type { Rates } from '#gateway';

/** A budget of an account or member: the most that it may spend in each period. */
export interface BudgetRule {
  readonly limit: MicroUsd;
  /** How often it starts again. null: never. */
  readonly limitReset: LimitReset | null;
  /** A soft limit refuses no calls. It only causes notices. */
  readonly limitSoft: boolean;
  /** A notice is sent when these percentages of the limit are spent. */
  readonly notify: readonly number[];
  /** As in SpendLimit. It is computed, never set. */
  readonly carried?: CarriedUse;
}

/** Limits beyond those of single keys. */
export interface AccountLimits extends Rates {
  /** At most one for each value of `limitReset`. */
  readonly budgets: readonly BudgetRule[];
}

/**
 * Which limits of an account: `account` for those that the owner set, `operator` for those that the operator set. Any
 * other value is the account of a member: the limits for the spending of that member's keys.
 */
export type LimitsSubject = 'account' | 'operator' | (string & {});

/** The kind of a subject, as shown to callers. */
export function ownerOfLimits(subject: LimitsSubject): 'account' | 'operator' | 'member' {
  if (subject === 'account') return 'account';
  return subject === 'operator' ? 'operator' : 'member';
}

export interface LimitsOf {
  readonly subject: LimitsSubject;
  readonly limits: AccountLimits;
}

export const NO_LIMITS: AccountLimits = { budgets: [], requestsPerMinute: null, tokensPerMinute: null };

/** The default percentages for notices. */
export const USUAL_PERCENTAGES: readonly number[] = [50, 80, 100];

/**
 * The ledger's name of a budget, without the period. See budgetAt. The separator `|` never occurs in the name of an
 * account.
 */
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

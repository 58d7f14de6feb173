import type { Budget, BudgetUse } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import type { Row } from '#store';
import type { MinuteRates, CallerBudget } from './caller.ts';
import { type Tags, tagsFromText } from './tags.ts';

/** A budget of an account or member: the most that it may spend in each period. */
export interface BudgetRule {
  readonly limit: MicroUsd;
  readonly limitReset: LimitReset | null;
  readonly limitSoft: boolean;
  /** A notice is sent when these percentages of the limit are spent. */
  readonly notify: readonly number[];
  /** As in SpendLimit. It is computed, never set. */
  readonly carried?: CarriedUse;
}

/**
 * A budget of the calls of an account that have one tag. It is hard and sends no notices. Its periods end, because
 * archived calls no longer show their tags.
 */
export interface TagBudgetRule {
  readonly name: string;
  readonly value: string;
  readonly limit: MicroUsd;
  readonly limitReset: LimitReset;
  /** As in SpendLimit. It is computed, never set. */
  readonly carried?: CarriedUse;
}

export interface CallRules {
  /** Patterns of services and tools, see Access. null: everything. */
  readonly allowedServices: readonly string[] | null;
  /** A person accepts each call that may cost more, before it runs. null: no call. */
  readonly askAbove: MicroUsd | null;
  /** Tags of each call, which no request changes. null: none. */
  readonly tags: Tags | null;
}

export interface AccountLimits extends MinuteRates, CallRules {
  /** At most one for each value of `limitReset`. */
  readonly budgets: readonly BudgetRule[];
  /** At most one for each tag and `limitReset`. Members have none. */
  readonly tagBudgets: readonly TagBudgetRule[];
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

export const NO_LIMITS: AccountLimits = {
  budgets: [],
  tagBudgets: [],
  requestsPerMinute: null,
  tokensPerMinute: null,
  allowedServices: null,
  askAbove: null,
  tags: null,
};

export const callRulesOf = (row: Row): CallRules => ({
  allowedServices: patternsFromText(row['allowed_services'] as string | null),
  askAbove: row['ask_above'] as bigint | null,
  tags: tagsFromText(row['tags'] as string | null),
});

const patternsFromText = (text: string | null): CallRules['allowedServices'] =>
  text === null ? null : (JSON.parse(text) as readonly string[]);

export const patternsToText = (patterns: CallRules['allowedServices']): string | null =>
  patterns === null ? null : JSON.stringify(patterns);

export const USUAL_PERCENTAGES: readonly number[] = [50, 80, 100];

/**
 * The ledger's name of a budget, without the period. See budgetAt. The separator `|` never occurs in the name of an
 * account.
 */
export function budgetName(account: string, subject: LimitsSubject): string {
  const holder = ownerOfLimits(subject);
  return holder === 'member' ? `member:${account}|${subject}` : `${holder}:${account}`;
}

/** The same of the budget of a tag. The ids of budgets have no spaces and no quotes. */
export const tagBudgetName = (account: string, subject: LimitsSubject, { name, value }: TagPair): string =>
  `${budgetName(account, subject)}|${name}=${encodeURIComponent(value).replaceAll("'", '%27')}`;

type TagPair = Pick<TagBudgetRule, 'name' | 'value'>;

/** A stored budget of a tag. `since`: when it may have got its period, in epoch milliseconds. */
interface StoredTagBudget extends TagBudgetRule {
  readonly since: number;
}

export const tagBudgetsToText = (budgets: readonly TagBudgetRule[], since: number): string =>
  JSON.stringify(
    budgets.map(({ name, value, limit, limitReset }) => ({ name, value, limit: `${limit}`, reset: limitReset, since })),
  );

export function tagBudgetsFromText(text: string): readonly StoredTagBudget[] {
  if (text === '[]') return [];
  const rules = JSON.parse(text) as readonly (TagPair & {
    readonly limit: string;
    readonly reset: LimitReset;
    readonly since: number;
  })[];
  return rules.map(({ limit, reset, ...rule }) => ({ ...rule, limit: BigInt(limit), limitReset: reset }));
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

/**
 * How often a spending limit starts again. Periods begin at 00:00 UTC: each day, each Monday, or each first of the
 * month.
 */
export const LIMIT_RESETS = ['daily', 'weekly', 'monthly'] as const;
export type LimitReset = (typeof LIMIT_RESETS)[number];

interface SpendPeriod {
  /** Epoch milliseconds of the first instant. */
  readonly start: number;
  /** Epoch milliseconds of the first instant after the period. */
  readonly end: number;
}

const DAY_MS = 86_400_000;
/** 1970-01-05 was the first Monday of the epoch. */
const FIRST_MONDAY = 4 * DAY_MS;

export function periodAt(reset: LimitReset, now: number): SpendPeriod {
  if (reset === 'monthly') {
    const date = new Date(now);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  }
  const [length, origin] = reset === 'daily' ? [DAY_MS, 0] : [7 * DAY_MS, FIRST_MONDAY];
  const start = Math.floor((now - origin) / length) * length + origin;
  return { start, end: start + length };
}

/** A spending limit in micro-USD for each period. */
export interface SpendLimit {
  readonly limit: MicroUsd | null;
  /** How often the limit starts again. null: never. */
  readonly limitReset: LimitReset | null;
  /** A soft limit refuses no calls. It only causes notices. */
  readonly limitSoft: boolean;
  /** Further spending that counts in one of its periods. Absent if there is no such spending. See CarriedSums. */
  readonly carried?: CarriedUse;
}

/** Spending that is carried to a budget of the ledger, which is one period of a limit. */
export interface CarriedUse extends BudgetUse {
  readonly budget: string;
  /** The error of the database that hid the sum, which is 0 here. Absent: the sum is known. */
  readonly unsummed?: unknown;
}

/** A limit that nobody reaches. Sums with it still fit into 64 bits. */
const NO_LIMIT: MicroUsd = 2n ** 61n;

/**
 * The ledger's budget for the current period of a limit. Its id is `<name>:all`, or `<name>:daily-2026-01-31` with the
 * reset and the first day of the period. So each period is a new budget that starts at 0. A key without a limit has a
 * budget too, so that its spending is counted. The ledger writes it once for all calls of a key in a batch.
 */
export function budgetAt(
  name: string,
  { limit, limitReset, limitSoft, carried }: SpendLimit,
  now: number,
): Budget & Pick<CallerBudget, 'resetsAt' | 'unsummed'> {
  const most = limit === null || limitSoft ? NO_LIMIT : limit;
  const { id, end } = budgetPeriod(name, limit === null ? null : limitReset, now);
  const budget = { id, limit: most, resetsAt: end };
  if (carried?.budget !== id) return budget;
  if (carried.unsummed !== undefined) return { ...budget, unsummed: carried.unsummed };
  return { ...budget, carried: { spent: carried.spent, locked: carried.locked } };
}

interface BudgetPeriod {
  readonly id: string;
  readonly start: number | null;
  readonly end: number | null;
}

export function budgetPeriod(name: string, reset: LimitReset | null, at: number): BudgetPeriod {
  if (reset === null) return { id: `${name}:all`, start: null, end: null };
  const { start, end } = periodAt(reset, at);
  return { id: `${name}:${periodName(reset, start)}`, start, end };
}

/** The name of a period: the reset and the first day, such as `daily-2026-01-31`. */
export const periodName = (reset: LimitReset, start: number): string =>
  `${reset}-${new Date(start).toISOString().slice(0, 10)}`;

import { loadStatements, type Database, type Row, type Step, type Value } from '#store';
import type { MemberRole } from './caller.ts';
import {
  budgetName,
  budgetsFromText,
  budgetsToText,
  callRulesOf,
  NO_LIMITS,
  patternsToText,
  type AccountLimits,
  type BudgetRule,
  type LimitsOf,
  type LimitsSubject,
  type TagBudgetRule,
  tagBudgetsFromText,
  tagBudgetsToText,
} from './budgets.ts';
import { tagsToText } from './tags.ts';
import { createCarriedSums, type CarriedSums, carryingBudget, carryingTag } from './carried-sums.ts';

/** Limits of accounts in the database. All methods reject with the database's error. */
export interface LimitsStore {
  /**
   * All limits of an account, one entry for each subject. `at` (epoch milliseconds, default now) selects the periods
   * whose carried sums are added to the budgets.
   */
  limitsOf(account: string, at?: number): Promise<readonly LimitsOf[]>;
  get(account: string, subject: LimitsSubject): Promise<AccountLimits>;
  /**
   * Replaces the given fields and keeps the others. Takes effect at once here, and within a second on other gateways.
   * Resolves with the new limits. Changes nothing if the subject is an account that is not a member.
   */
  change(account: string, subject: LimitsSubject, changes: Partial<AccountLimits>): Promise<AccountLimits>;
  /** Must be called before `limitsSteps` sets budgets. See CarriedSums.prepare. */
  prepare(account: string, subject: LimitsSubject, changes: Partial<AccountLimits>): Promise<void>;
  /** Notifies the listeners of an account whose limits `limitsSteps` changed. */
  changed(account: string): void;
  /** Calls `listener` with each account whose limits this store has changed. Returns a function that unsubscribes. */
  onChange(listener: (account: string) => void): () => void;
}

const SQL = loadStatements(import.meta.url, './sql/limits.sql', ['listLimits', 'changeLimits', 'deleteNoLimits']);

/**
 * Steps that replace the given limits. The first step returns the new limits, or no row if the member does not exist or
 * does not have `role` at that time. `at`: now, in epoch milliseconds.
 */
export function limitsSteps(
  account: string,
  subject: LimitsSubject,
  { budgets, requestsPerMinute, tokensPerMinute, allowedServices, askAbove, tags, tagBudgets }: Partial<AccountLimits>,
  { at, role = null }: { readonly at: number; readonly role?: MemberRole | null | undefined },
): readonly Step[] {
  const set = <T extends Value>(value: T | undefined, none: T): Value[] =>
    value === undefined ? [0, none] : [1, value];
  const params = [
    account,
    subject,
    budgetName(account, subject),
    ...set(budgets && budgetsToText(budgets), '[]'),
    ...set(requestsPerMinute, null),
    ...set(tokensPerMinute, null),
    budgets?.some(({ notify }) => notify.length > 0) ? 1 : 0,
    role,
    at,
    ...set(allowedServices === undefined ? undefined : patternsToText(allowedServices), null),
    ...set(askAbove, null),
    ...set(tags === undefined ? undefined : tagsToText(tags), null),
    ...set(tagBudgets && tagBudgetsToText(tagBudgets, at), '[]'),
  ];
  return [
    { statement: SQL.changeLimits, params },
    { statement: SQL.deleteNoLimits, params: [account, subject] },
  ];
}

export function createLimitsStore(
  database: Pick<Database, 'query' | 'batch' | 'snapshot' | 'engine'>,
  { now }: { readonly now: () => number },
): LimitsStore {
  const sums = createCarriedSums(database, now);
  const listeners = new Set<(account: string) => void>();
  const changed = (account: string) => {
    for (const listener of listeners) listener(account);
  };
  const limitsOf = async (account: string, at = now()) => {
    const rows = await database.query(SQL.listLimits, [account]);
    return Promise.all(rows.map((row) => carryingLimitsOf(account, row, sums, at)));
  };
  const prepare: LimitsStore['prepare'] = async (account, subject, { budgets = [], tagBudgets = [] }) => {
    for (const rule of tagBudgets) await sums.prepare(carryingTag(account, subject, rule));
    if (budgets.length === 0) return;
    const row = (await database.query(SQL.listLimits, [account])).find((one) => one['subject'] === subject);
    const had = row ? budgetsFromText(row['rules'] as string).map(({ limitReset }) => limitReset) : [];
    const isNew = ({ limitReset }: BudgetRule) => !had.includes(limitReset);
    for (const { limitReset } of budgets.filter(isNew))
      await sums.prepare(carryingBudget(account, subject, limitReset, {}));
  };
  return {
    limitsOf,
    prepare,
    get: async (account, subject) =>
      (await limitsOf(account)).find((one) => one.subject === subject)?.limits ?? NO_LIMITS,
    async change(account, subject, changes) {
      await prepare(account, subject, changes);
      const steps = limitsSteps(account, subject, changes, { at: now() });
      // Listeners are notified after a failure too: the commit may have happened although its response was lost.
      const [rows] = await database.batch(steps).finally(() => changed(account));
      const [row] = rows!;
      return row ? (await carryingLimitsOf(account, row, sums, now())).limits : NO_LIMITS;
    },
    changed,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * The limits in a row, with the sums that are carried to its budgets in the periods at `at`. `row` has `subject`,
 * `rules`, the two rates, the rules of calls and the time columns of `account_limits`.
 */
export async function carryingLimitsOf(account: string, row: Row, sums: CarriedSums, at: number): Promise<LimitsOf> {
  const subject = row['subject'] as string;
  const rate = (column: string) => (row[column] === null ? null : Number(row[column]));
  const budgets = budgetsFromText(row['rules'] as string).map(async (rule): Promise<BudgetRule> => {
    const carried = await sums.useOf(carryingBudget(account, subject, rule.limitReset, row), at);
    return carried === null ? rule : { ...rule, carried };
  });
  const tagBudgets = tagBudgetsFromText(row['tag_rules'] as string).map(async (stored): Promise<TagBudgetRule> => {
    const { since: _since, ...rule } = stored;
    const carried = await sums.useOf(carryingTag(account, subject, stored), at);
    return carried === null ? rule : { ...rule, carried };
  });
  return {
    subject,
    limits: {
      budgets: await Promise.all(budgets),
      tagBudgets: await Promise.all(tagBudgets),
      requestsPerMinute: rate('requests_per_minute'),
      tokensPerMinute: rate('tokens_per_minute'),
      ...callRulesOf(row),
    },
  };
}

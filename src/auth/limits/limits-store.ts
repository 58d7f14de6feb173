import { loadStatement, type Database, type Row, type Step, type Value } from '#store';
import type { MemberRole } from '#gateway';
import {
  budgetName,
  budgetsFromText,
  budgetsToText,
  NO_LIMITS,
  type AccountLimits,
  type BudgetRule,
  type LimitsOf,
  type LimitsSubject,
} from './account-limits.ts';
import { createCarriedSums, type CarriedSums } from './carried-sums.ts';
import { carryingBudget } from './carrying-limits.ts';

/** Limits of accounts in the database. Rejects with the database's error when it cannot be reached. */
export interface LimitsStore {
  /**
   * All limits of an account, by their subject. What is carried to budgets is that of their periods at an instant:
   * `at`, epoch milliseconds, default now.
   */
  of(account: string, at?: number): Promise<readonly LimitsOf[]>;
  get(account: string, subject: LimitsSubject): Promise<AccountLimits>;
  /**
   * Replaces what is given, and leaves the rest: at once here, within a second on every other gateway. Resolves with
   * the limits as they are then. Nothing is kept for who is no member.
   */
  change(account: string, subject: LimitsSubject, changes: Partial<AccountLimits>): Promise<AccountLimits>;
  /** Before budgets are set by `limitsSteps`: see CarriedSums. */
  prepare(account: string, subject: LimitsSubject, budgets: readonly BudgetRule[]): Promise<void>;
  /** Tells the listeners of an account whose limits were changed by `limitsSteps`. */
  changed(account: string): void;
  /** `listener` is given each account whose limits this store has changed. Returns a function that ends it. */
  onChange(listener: (account: string) => void): () => void;
}

const LIST = loadStatement(import.meta.url, './sql/list-limits.sql');
const CHANGE = loadStatement(import.meta.url, './sql/change-limits.sql');
const DELETE_NONE = loadStatement(import.meta.url, './sql/delete-no-limits.sql');

/**
 * Steps that replace the limits that are given. The first gives back what they are then: nothing for a member that is
 * not there, or has not got `role` by then. `at`: now, in epoch milliseconds.
 */
export function limitsSteps(
  account: string,
  subject: LimitsSubject,
  { budgets, requestsPerMinute, tokensPerMinute }: Partial<AccountLimits>,
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
  ];
  return [
    { statement: CHANGE, params },
    { statement: DELETE_NONE, params: [account, subject] },
  ];
}

export function createLimitsStore(
  database: Pick<Database, 'query' | 'batch' | 'snapshot'>,
  { now }: { readonly now: () => number },
): LimitsStore {
  const sums = createCarriedSums(database, now);
  const listeners = new Set<(account: string) => void>();
  const changed = (account: string) => {
    for (const listener of listeners) listener(account);
  };
  const of = async (account: string, at = now()) => {
    const rows = await database.query(LIST, [account]);
    return Promise.all(rows.map((row) => carryingLimitsOf(account, row, sums, at)));
  };
  const prepare: LimitsStore['prepare'] = async (account, subject, budgets) => {
    if (budgets.length === 0) return;
    const row = (await database.query(LIST, [account])).find((one) => one['subject'] === subject);
    const had = row ? budgetsFromText(row['rules'] as string).map(({ limitReset }) => limitReset) : [];
    const isNew = ({ limitReset }: BudgetRule) => !had.includes(limitReset);
    for (const { limitReset } of budgets.filter(isNew))
      await sums.prepare(carryingBudget(account, subject, limitReset, {}));
  };
  return {
    of,
    prepare,
    get: async (account, subject) => (await of(account)).find((one) => one.subject === subject)?.limits ?? NO_LIMITS,
    async change(account, subject, changes) {
      await prepare(account, subject, changes.budgets ?? []);
      const steps = limitsSteps(account, subject, changes, { at: now() });
      // Also after a failure: a commit whose answer was lost may have happened.
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
 * A row with the columns `subject`, `rules`, the two rates and the times of `account_limits`, with what is carried to
 * its budgets in their periods of `at`.
 */
export async function carryingLimitsOf(account: string, row: Row, sums: CarriedSums, at: number): Promise<LimitsOf> {
  const subject = row['subject'] as string;
  const rate = (column: string) => (row[column] === null ? null : Number(row[column]));
  const budgets = budgetsFromText(row['rules'] as string).map(async (rule): Promise<BudgetRule> => {
    const carried = await sums.of(carryingBudget(account, subject, rule.limitReset, row), at);
    return carried === null ? rule : { ...rule, carried };
  });
  return {
    subject,
    limits: {
      budgets: await Promise.all(budgets),
      requestsPerMinute: rate('requests_per_minute'),
      tokensPerMinute: rate('tokens_per_minute'),
    },
  };
}

import { loadStatement, type Database, type Row, type Step, type Value } from '#store';
import type { MemberRole } from '#gateway';
import {
  budgetName,
  budgetsFromText,
  budgetsToText,
  NO_LIMITS,
  type AccountLimits,
  type LimitsOf,
  type LimitsSubject,
} from './account-limits.ts';

/** Limits of accounts in the database. Rejects with the database's error when it cannot be reached. */
export interface LimitsStore {
  /** All limits of an account, by their subject. */
  of(account: string): Promise<readonly LimitsOf[]>;
  get(account: string, subject: LimitsSubject): Promise<AccountLimits>;
  /**
   * Replaces what is given, and leaves the rest: at once here, within a second on every other gateway. Resolves with
   * the limits as they are then. Nothing is kept for who is no member.
   */
  change(account: string, subject: LimitsSubject, changes: Partial<AccountLimits>): Promise<AccountLimits>;
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
  database: Pick<Database, 'query' | 'batch'>,
  { now }: { readonly now: () => number },
): LimitsStore {
  const listeners = new Set<(account: string) => void>();
  const changed = (account: string) => {
    for (const listener of listeners) listener(account);
  };
  const of = async (account: string) => (await database.query(LIST, [account])).map(limitsOf);
  return {
    of,
    get: async (account, subject) => (await of(account)).find((one) => one.subject === subject)?.limits ?? NO_LIMITS,
    async change(account, subject, changes) {
      try {
        const [rows] = await database.batch(limitsSteps(account, subject, changes, { at: now() }));
        return rows![0] ? limitsOf(rows![0]).limits : NO_LIMITS;
      } finally {
        // Also after a failure: a commit whose answer was lost may have happened.
        changed(account);
      }
    },
    changed,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A row with the columns `subject`, `rules` and the two rates of `account_limits`. */
export function limitsOf(row: Row): LimitsOf {
  const rate = (name: string) => (row[name] === null ? null : Number(row[name]));
  return {
    subject: row['subject'] as string,
    limits: {
      budgets: budgetsFromText(row['rules'] as string),
      requestsPerMinute: rate('requests_per_minute'),
      tokensPerMinute: rate('tokens_per_minute'),
    },
  };
}

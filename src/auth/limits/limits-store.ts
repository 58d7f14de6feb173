import { loadStatement, type Database, type Row, type Value } from '#store';
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
   * the limits as they are then.
   */
  change(account: string, subject: LimitsSubject, changes: Partial<AccountLimits>): Promise<AccountLimits>;
  /** `listener` is given each account whose limits this store has changed. Returns a function that ends it. */
  onChange(listener: (account: string) => void): () => void;
}

const LIST = loadStatement(import.meta.url, './sql/list-limits.sql');
const CHANGE = loadStatement(import.meta.url, './sql/change-limits.sql');
const DELETE_NONE = loadStatement(import.meta.url, './sql/delete-no-limits.sql');

export function createLimitsStore(database: Pick<Database, 'query' | 'batch'>): LimitsStore {
  const listeners = new Set<(account: string) => void>();
  const of = async (account: string) => (await database.query(LIST, [account])).map(limitsOf);
  return {
    of,
    get: async (account, subject) => (await of(account)).find((one) => one.subject === subject)?.limits ?? NO_LIMITS,
    async change(account, subject, { budgets, requestsPerMinute, tokensPerMinute }) {
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
      ];
      try {
        const [changed] = await database.batch([
          { statement: CHANGE, params },
          { statement: DELETE_NONE, params: [account, subject] },
        ]);
        return limitsOf(changed![0]!).limits;
      } finally {
        // Also after a failure: a commit whose answer was lost may have happened.
        for (const listener of listeners) listener(account);
      }
    },
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

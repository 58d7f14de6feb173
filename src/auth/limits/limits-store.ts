import { loadStatement, type Database, type Row } from '#store';
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
  /** Replaces them: at once here, within a second on every other gateway. */
  put(account: string, subject: LimitsSubject, limits: AccountLimits): Promise<void>;
  /** `listener` is given each account whose limits this store has changed. Returns a function that ends it. */
  onChange(listener: (account: string) => void): () => void;
}

const LIST = loadStatement(import.meta.url, './sql/list-limits.sql');
const PUT = loadStatement(import.meta.url, './sql/put-limits.sql');
const DELETE = loadStatement(import.meta.url, './sql/delete-limits.sql');

export function createLimitsStore(database: Pick<Database, 'query'>): LimitsStore {
  const listeners = new Set<(account: string) => void>();
  const of = async (account: string) => (await database.query(LIST, [account])).map(limitsOf);
  return {
    of,
    get: async (account, subject) => (await of(account)).find((one) => one.subject === subject)?.limits ?? NO_LIMITS,
    async put(account, subject, limits) {
      const { budgets, requestsPerMinute, tokensPerMinute } = limits;
      const isEmpty = budgets.length === 0 && requestsPerMinute === null && tokensPerMinute === null;
      const notifies = budgets.some(({ notify }) => notify.length > 0) ? 1 : 0;
      const name = budgetName(account, subject);
      const params = [account, subject, name, budgetsToText(budgets), requestsPerMinute, tokensPerMinute, notifies];
      try {
        await (isEmpty ? database.query(DELETE, [account, subject]) : database.query(PUT, params));
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

/** A row with the columns `subject`, `budgets` and the two rates of `account_limits`. */
export function limitsOf(row: Row): LimitsOf {
  const rate = (name: string) => (row[name] === null ? null : Number(row[name]));
  return {
    subject: row['subject'] as string,
    limits: {
      budgets: budgetsFromText(row['budgets'] as string),
      requestsPerMinute: rate('requests_per_minute'),
      tokensPerMinute: rate('tokens_per_minute'),
    },
  };
}

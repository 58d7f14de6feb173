import { loadStatement, type Database, type Row } from '#store';
import type { AccountState, AccountStates } from './account-states.ts';
import { localAccount } from './accounts/account-id.ts';

/** An account that the operator created or named, or that a wallet began with its first key or deposit. */
export interface Consumer {
  /** The ledger's name, without `escrow:`. */
  readonly account: string;
  readonly label: string;
  readonly createdAt: number;
  readonly state: AccountState;
  /** Why the operator changed the state last; empty if it was never changed. */
  readonly stateReason: string;
  /** Epoch milliseconds of that change. */
  readonly stateAt: number | null;
}

interface Created {
  readonly created: boolean;
  readonly consumer: Consumer;
}

export interface ConsumerStore {
  /**
   * Creates an account, or finds the existing one, whose label stays. `created` tells which. null, and nothing is made,
   * if another account has this label or name, in any case of letters.
   */
  create(account: string, label: string): Promise<Created | null>;
  /** The account, which is created without a label if it does not exist. */
  ensure(account: string): Promise<Consumer>;
  /** Finds an account that the operator created or named. */
  find(account: string): Promise<Consumer | null>;
  /** Whether `list` has the account. */
  isKnown(account: string): Promise<boolean>;
  /** All accounts, or those in one state or with one label (in any case of letters), oldest first. */
  list(page: {
    readonly offset: number;
    readonly limit: number;
    readonly state?: AccountState | undefined;
    readonly label?: string | undefined;
  }): Promise<readonly Consumer[]>;
  /**
   * Changes the label. null, and nothing changes, if another account has this label or name, in any case of letters.
   */
  rename(account: string, label: string): Promise<Consumer | null>;
  /**
   * Changes the state. Deletes the keys of an account that is closed, and ends its sessions of browsers. null, and
   * nothing changes, if the account is not in the state `from`. Takes effect at once here, and within a second on other
   * gateways.
   */
  changeState(
    account: string,
    change: { readonly from: AccountState; readonly to: AccountState; readonly reason: string },
  ): Promise<Consumer | null>;
}

const INSERT = loadStatement(import.meta.url, './sql/insert-consumer.sql');
const INSERT_NAMED = loadStatement(import.meta.url, './sql/insert-named-consumer.sql');
const FIND = loadStatement(import.meta.url, './sql/find-consumer.sql');
const LIST = loadStatement(import.meta.url, './sql/list-consumers.sql');
const KNOWN = loadStatement(import.meta.url, './sql/is-known-consumer.sql');
const RENAME = loadStatement(import.meta.url, './sql/rename-consumer.sql');
const CHANGE_STATE = loadStatement(import.meta.url, './sql/change-state.sql');
const DELETE_KEYS = loadStatement(import.meta.url, './sql/delete-keys-of-closed.sql');
const END_SESSIONS = loadStatement(import.meta.url, './sql/end-sessions-of-closed.sql');
const LABELS = loadStatement(import.meta.url, './sql/list-labels-like.sql');
const WAIT_FOR_TURN = loadStatement(import.meta.url, './sql/wait-for-turn.sql');
const END_TURN = loadStatement(import.meta.url, './sql/end-turn.sql');

/** The registry of accounts. Accounts are never deleted. All methods reject with the database's error. */
export function createConsumerStore(
  database: Database,
  { now, states }: { readonly now: () => number; readonly states?: Pick<AccountStates, 'changed'> },
): ConsumerStore {
  const find = async (account: string): Promise<Consumer | null> => {
    const [row] = await database.query(FIND, [account]);
    return row ? consumerOf(row) : null;
  };
  return {
    find,
    isKnown: async (account) => (await database.query(KNOWN, [account])).length > 0,
    async create(account, label) {
      const found = await find(account);
      if (found) return { created: false, consumer: found };
      if (label !== '' && (await isLabelTaken(database, account, label))) return null;
      const params = [account, label, now(), nameOf(label)];
      const row =
        label === ''
          ? (await database.query(INSERT, params.slice(0, 3)))[0]
          : (await inTurn(database, LABELS_TURN, [{ statement: INSERT_NAMED, params }]))[0];
      if (row) return { created: true, consumer: consumerOf(row) };
      const made = await find(account);
      return made && { created: false, consumer: made };
    },
    async ensure(account) {
      const [row] = await database.query(INSERT, [account, '', now()]);
      const consumer = row ? consumerOf(row) : await find(account);
      if (!consumer) throw new Error(`account ${account} could neither be created nor found`);
      return consumer;
    },
    async list({ offset, limit, state, label }) {
      return (await database.query(LIST, [limit, offset, state ?? '', label ?? ''])).map(consumerOf);
    },
    async rename(account, label) {
      if (await isLabelTaken(database, account, label)) return null;
      const params = [account, label, nameOf(label)];
      const [row] = await inTurn(database, LABELS_TURN, [{ statement: RENAME, params }]);
      return row ? consumerOf(row) : null;
    },
    async changeState(account, { from, to, reason }) {
      try {
        const [rows] = await database.batch([
          { statement: CHANGE_STATE, params: [account, from, to, reason, now()] },
          { statement: DELETE_KEYS, params: [account] },
          { statement: END_SESSIONS, params: [account] },
        ]);
        const [row] = rows!;
        return row ? consumerOf(row) : null;
      } finally {
        // After a failure too: the commit may have happened although its response was lost.
        states?.changed();
      }
    },
  };
}

/** The turn of statements that write labels. See inTurn. */
export const LABELS_TURN = 'labels of accounts';

/**
 * Whether another account has this label. The statements that write a label are exact for two at once, but the embedded
 * database folds only ASCII letters. So labels with others are compared here, and the rest by the database: to read all
 * labels for each new organisation would take longer with each account.
 */
export async function isLabelTaken(
  database: Pick<Database, 'query'>,
  account: string,
  label: string,
): Promise<boolean> {
  const name = folded(label);
  const others = await database.query(LABELS, [account, name]);
  return others.some((row) => folded(row['label'] as string) === name);
}

type Steps = Parameters<Database['batch']>[0];

/**
 * Runs steps in one transaction. Transactions with the same `turn` run one after the other, on all gateways, so each
 * counts the rows of those before. Resolves with the rows of the last step.
 */
export async function inTurn(database: Pick<Database, 'batch'>, turn: string, steps: Steps): Promise<readonly Row[]> {
  const params = [turn];
  const results = await database.batch([
    { statement: WAIT_FOR_TURN, params },
    ...steps,
    { statement: END_TURN, params },
  ]);
  return results.at(-2)!;
}

const consumerOf = (row: Row): Consumer => ({
  account: row['account'] as string,
  label: row['label'] as string,
  createdAt: Number(row['created_at']),
  state: row['state'] as AccountState,
  stateReason: row['state_reason'] as string,
  stateAt: row['state_at'] === null ? null : Number(row['state_at']),
});

const folded = (label: string): string => label.normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/g, ' ');

/** The account whose name is this label; empty if no account can be named so. */
export function nameOf(label: string): string {
  try {
    return localAccount(label.toLowerCase());
  } catch {
    return '';
  }
}

import { after } from '#wire';
import { listParam, loadStatements, type Database, type Row } from '#store';
import { GatewayError } from '#errors';
import { localAccount } from './account-id.ts';

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
  ensure(account: string): Promise<Consumer>;
  find(account: string): Promise<Consumer | null>;
  /** The labels of accounts. Without those of accounts that have none. */
  labels(accounts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  isKnown(account: string): Promise<boolean>;
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

const SQL = loadStatements(import.meta.url, './sql/consumers.sql', [
  'insertConsumer',
  'insertNamedConsumer',
  'findConsumer',
  'findLabels',
  'listConsumers',
  'isKnownConsumer',
  'renameConsumer',
  'changeState',
  'deleteKeysOfClosed',
  'endSessionsOfClosed',
  'listLabelsLike',
  'waitForTurn',
  'endTurn',
  'listStoppedAccounts',
]);

/** The registry of accounts. Accounts are never deleted. All methods reject with the database's error. */
export function createConsumerStore(
  database: Database,
  { now, states }: { readonly now: () => number; readonly states?: Pick<AccountStates, 'changed'> },
): ConsumerStore {
  const find = async (account: string): Promise<Consumer | null> => {
    const [row] = await database.query(SQL.findConsumer, [account]);
    return row ? consumerOf(row) : null;
  };
  return {
    find,
    async labels(accounts) {
      const rows = await database.query(SQL.findLabels, [listParam(accounts)]);
      return new Map(rows.map((row) => [row['account'] as string, row['label'] as string]));
    },
    isKnown: async (account) => (await database.query(SQL.isKnownConsumer, [account])).length > 0,
    async create(account, label) {
      const consumer = await find(account);
      if (consumer) return { created: false, consumer };
      if (label !== '' && (await isLabelTaken(database, account, label))) return null;
      const params = [account, label, now(), nameOf(label)];
      const row =
        label === ''
          ? (await database.query(SQL.insertConsumer, params.slice(0, 3)))[0]
          : (await inTurn(database, LABELS_TURN, [{ statement: SQL.insertNamedConsumer, params }]))[0];
      if (row) return { created: true, consumer: consumerOf(row) };
      const created = await find(account);
      return created && { created: false, consumer: created };
    },
    async ensure(account) {
      const [row] = await database.query(SQL.insertConsumer, [account, '', now()]);
      const consumer = row ? consumerOf(row) : await find(account);
      if (!consumer) throw new Error(`account ${account} could neither be created nor found`);
      return consumer;
    },
    async list({ offset, limit, state, label }) {
      return (await database.query(SQL.listConsumers, [limit, offset, state ?? '', label ?? ''])).map(consumerOf);
    },
    async rename(account, label) {
      if (label !== '' && (await isLabelTaken(database, account, label))) return null;
      const params = [account, label, nameOf(label)];
      const [row] = await inTurn(database, LABELS_TURN, [{ statement: SQL.renameConsumer, params }]);
      return row ? consumerOf(row) : null;
    },
    async changeState(account, { from, to, reason }) {
      try {
        const [rows] = await database.batch([
          { statement: SQL.changeState, params: [account, from, to, reason, now()] },
          { statement: SQL.deleteKeysOfClosed, params: [account] },
          { statement: SQL.endSessionsOfClosed, params: [account] },
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
  const others = await database.query(SQL.listLabelsLike, [account, name]);
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
    { statement: SQL.waitForTurn, params },
    ...steps,
    { statement: SQL.endTurn, params },
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

/**
 * The states that the operator gives an account. `frozen`: no new calls and no withdrawals, but its owner may look, and
 * deposits arrive. `closed`: no request at all.
 */
export const ACCOUNT_STATES = ['open', 'frozen', 'closed'] as const;
export type AccountState = (typeof ACCOUNT_STATES)[number];

/** The longest time that this gateway may still serve an account which another gateway has stopped. */
const TTL_MS = 1_000;

/** The states of accounts as this gateway knows them. They are at most a second old. */
export interface AccountStates {
  /** A promise if they must be read again, which happens at most once a second. Rejects with the database's error. */
  stateOf(account: string): AccountState | Promise<AccountState>;
  changed(): void;
}

/** Only frozen and closed accounts are read and kept in memory, and these are few. */
export function createAccountStates(database: Pick<Database, 'query'>, now: () => number): AccountStates {
  let stopped: ReadonlyMap<string, AccountState> = new Map();
  let from = -Infinity;
  let changes = 0;
  let reading: { readonly startedAt: number; readonly done: Promise<void> } | null = null;

  const read = (startedAt: number): Promise<void> => {
    const before = changes;
    const answer = database.query(SQL.listStoppedAccounts);
    const load = async (): Promise<void> => {
      try {
        const rows = await answer;
        // An answer from before a change does not count. A late one does: whoever waits for it may have nothing newer.
        if (changes !== before) return;
        stopped = new Map(rows.map((row) => [row['account'] as string, row['state'] as AccountState]));
        from = startedAt;
      } finally {
        if (reading === stateRead) reading = null;
      }
    };
    const stateRead = { startedAt, done: load() };
    reading = stateRead;
    return stateRead.done;
  };
  const known = (account: string): AccountState => stopped.get(account) ?? 'open';
  /** `at`: when somebody began to wait. What is read later than that is good for them too. */
  const lookUp = async (account: string, at: number): Promise<AccountState> => {
    await (reading !== null && reading.startedAt > at - TTL_MS ? reading.done : read(now()));
    // A change during the reading discards it.
    return from > at - TTL_MS ? known(account) : lookUp(account, at);
  };
  return {
    stateOf(account) {
      const at = now();
      return at >= from && at < from + TTL_MS ? known(account) : lookUp(account, at);
    },
    changed() {
      from = -Infinity;
      reading = null;
      changes += 1;
    },
  };
}

/** The error of a new call by `account`; null if it may make calls. */
export function refuseStopped(states: Pick<AccountStates, 'stateOf'>, account: string) {
  const errorOf = (state: AccountState) => (state === 'open' ? null : stoppedAccount(state));
  return after(states.stateOf(account), errorOf);
}

/** The error of a request that the state of its account does not allow. */
export function stoppedAccount(state: Exclude<AccountState, 'open'>): GatewayError {
  return new GatewayError(
    'permission_denied',
    state === 'frozen'
      ? 'This account is frozen by the operator of this gateway: it cannot make calls or withdraw. Ask the operator'
      : 'This account is closed. Ask the operator of this gateway',
  );
}

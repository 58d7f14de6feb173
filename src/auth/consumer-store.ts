import { loadStatement, type Database, type Row } from '#store';

/** An account that the operator created or named, or that a wallet began with its first key or deposit. */
export interface Consumer {
  /** The ledger's name, without `escrow:`. */
  readonly account: string;
  readonly label: string;
  readonly createdAt: number;
}

export interface ConsumerStore {
  /** Creates an account, or finds the existing one. `created` tells which. */
  create(account: string, label: string): Promise<{ readonly created: boolean; readonly consumer: Consumer }>;
  /** Finds an account that the operator created or named. */
  find(account: string): Promise<Consumer | null>;
  /** Whether `list` has the account. */
  isKnown(account: string): Promise<boolean>;
  /** All accounts, oldest first. */
  list(page: { readonly offset: number; readonly limit: number }): Promise<readonly Consumer[]>;
}

const INSERT = loadStatement(import.meta.url, './sql/insert-consumer.sql');
const FIND = loadStatement(import.meta.url, './sql/find-consumer.sql');
const LIST = loadStatement(import.meta.url, './sql/list-consumers.sql');
const KNOWN = loadStatement(import.meta.url, './sql/is-known-consumer.sql');
const WAIT_FOR_TURN = loadStatement(import.meta.url, './sql/wait-for-turn.sql');
const END_TURN = loadStatement(import.meta.url, './sql/end-turn.sql');

/** The registry of accounts. Accounts are never deleted. All methods reject with the database's error. */
export function createConsumerStore(database: Database, { now }: { readonly now: () => number }): ConsumerStore {
  const find = async (account: string): Promise<Consumer | null> => {
    const [row] = await database.query(FIND, [account]);
    return row ? consumerOf(row) : null;
  };
  return {
    find,
    isKnown: async (account) => (await database.query(KNOWN, [account])).length > 0,
    async create(account, label) {
      const [row] = await database.query(INSERT, [account, label, now()]);
      if (row) return { created: true, consumer: consumerOf(row) };
      const consumer = await find(account);
      if (!consumer) throw new Error(`account ${account} could neither be created nor found`);
      return { created: false, consumer };
    },
    async list({ offset, limit }) {
      return (await database.query(LIST, [limit, offset])).map(consumerOf);
    },
  };
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
});

import { loadStatement, rowReader, type Database } from '#store';

const load = (name: string) => loadStatement(import.meta.url, `./sql/${name}.sql`);
const BIND = load('bind-wallet');
const FIND = load('find-wallet');
const LIST = load('list-wallets');
const UNBIND = load('unbind-wallet');

/** A wallet whose ownership an account has proven. */
export interface BoundWallet {
  /** `eip155:<address in lower case>` or `solana:<address>`. */
  readonly wallet: string;
  readonly account: string;
  /** Epoch milliseconds. */
  readonly boundAt: number;
}

/** Wallets that are bound to accounts. An account that is itself a wallet needs no binding. */
export interface Wallets {
  /** False if the wallet is already bound, to this or another account. */
  bind(wallet: string, account: string): Promise<boolean>;
  find(wallet: string): Promise<BoundWallet | null>;
  list(account: string): Promise<readonly BoundWallet[]>;
  unbind(wallet: string, account: string): Promise<boolean>;
}

export function createWallets(database: Database, { now }: { readonly now: () => number }): Wallets {
  const read = async (...query: Parameters<Database['query']>): Promise<readonly BoundWallet[]> =>
    (await database.query(...query)).map(toWallet);
  return {
    bind: async (wallet, account) => (await database.query(BIND, [wallet, account, now()])).length > 0,
    find: async (wallet) => (await read(FIND, [wallet]))[0] ?? null,
    list: (account) => read(LIST, [account]),
    unbind: async (wallet, account) => (await database.query(UNBIND, [wallet, account])).length > 0,
  };
}

const toWallet = rowReader<BoundWallet>({ boundAt: Number });

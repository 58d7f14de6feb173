import { loadStatements, rowReader, type Database } from '#store';
import { escrowOf, type Ledger } from '#billing';
import { type Incoming, plainAddress } from './chain.ts';

const SQL = loadStatements(import.meta.url, './sql/wallets.sql', [
  'bindWallet',
  'findWallet',
  'listWallets',
  'unbindWallet',
]);

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
    bind: async (wallet, account) => (await database.query(SQL.bindWallet, [wallet, account, now()])).length > 0,
    find: async (wallet) => (await read(SQL.findWallet, [wallet]))[0] ?? null,
    list: (account) => read(SQL.listWallets, [account]),
    unbind: async (wallet, account) => (await database.query(SQL.unbindWallet, [wallet, account])).length > 0,
  };
}

const toWallet = rowReader<BoundWallet>({ boundAt: Number });

export interface AttributionOptions {
  readonly ledger: Pick<Ledger, 'balance'>;
  readonly wallets: Pick<Wallets, 'find'>;
  /** Whether the transfer is the operator's money from another treasury. Its act then takes it out of suspense. */
  readonly isArrival: (event: Incoming, network: string, deposit: string) => Promise<boolean>;
  /** Resolves with the account that a memo names, or null. */
  readonly accountOfMemo: (memo: string) => Promise<string | null>;
}

/**
 * Returns a function that finds the account for a plain transfer. The operator's moves between treasuries have no
 * account. Otherwise it is the account in the memo, else the account that the sending wallet is bound to, else the
 * wallet's own account if it was ever used. null: the transfer stays in suspense.
 *
 * An address may have been used both as an ordinary wallet and as a contract. It then has two accounts, and only a
 * signature decides, because anybody can create an account of any name by sending something to it.
 */
export function createAttribution({ ledger, wallets, isArrival, accountOfMemo }: AttributionOptions) {
  return async (event: Incoming, network: string, deposit: string): Promise<string | null> => {
    if (await isArrival(event, network, deposit)) return null;
    const { memo, sender } = event;
    const account = memo === null ? null : await accountOfMemo(memo);
    if (account !== null) return account;
    const isEvm = network.startsWith('eip155:');
    const address = plainAddress(network, sender);
    const wallet = `${network.slice(0, network.indexOf(':'))}:${address}`;
    const bound = await wallets.find(wallet);
    if (bound !== null) return bound.account;
    const used: string[] = [];
    for (const account of isEvm ? [wallet, `${network}:${address}`] : [wallet])
      if ((await ledger.balance(escrowOf(account))) !== null) used.push(account);
    return used.length === 1 ? used[0]! : null;
  };
}

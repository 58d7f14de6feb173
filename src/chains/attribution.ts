import { escrowOf, type Ledger } from '#billing';
import type { Incoming } from './chain.ts';
import { plainAddress } from './plain-address.ts';
import type { Wallets } from './wallets.ts';

export interface AttributionOptions {
  readonly ledger: Pick<Ledger, 'balance'>;
  readonly wallets: Pick<Wallets, 'find'>;
  /** Whether it is money of the operator's that arrives from another treasury: the act takes it out of suspense. */
  readonly isArrival: (event: Incoming, network: string, deposit: string) => Promise<boolean>;
  /** The account that a memo names, or null. */
  readonly accountOfMemo: (memo: string) => Promise<string | null>;
}

/**
 * The account that a plain transfer is for. What the operator moves between treasuries is nobody's. Else it is the
 * account that the memo names, else the one that the sending wallet is bound to, else the wallet's own where it was
 * ever used. null: the transfer stays in suspense.
 *
 * An address that was used as an ordinary wallet and as a contract is attributed by its signature alone: anybody
 * can make an account of any name, by sending something to it.
 */
export function createAttribution({ ledger, wallets, isArrival, accountOfMemo }: AttributionOptions) {
  return async (event: Incoming, network: string, deposit: string): Promise<string | null> => {
    if (await isArrival(event, network, deposit)) return null;
    const { memo, sender } = event;
    const named = memo === null ? null : await accountOfMemo(memo);
    if (named !== null) return named;
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

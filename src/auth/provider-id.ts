import type { Identity } from './identity.ts';

const ORDINARY_WALLET = /^(?:solana:([1-9A-HJ-NP-Za-km-z]{32,44})|eip155:(0x[0-9a-f]{40}))$/;

/**
 * The public key that identifies the owner of `account` (a ledger account) as a provider: the wallet's own. For an
 * account without an ordinary wallet it is derived from the gateway's identity, and always the same.
 */
export function providerIdOf(account: string, identity: Pick<Identity, 'providerId'>): string {
  const wallet = ORDINARY_WALLET.exec(account);
  // The configuration file allows no colon in a provider's name, so the two never clash.
  return wallet?.[1] ?? wallet?.[2] ?? identity.providerId(`account:${account}`);
}

import type { Identity } from './identity.ts';

const ORDINARY_WALLET = /^(?:solana:([1-9A-HJ-NP-Za-km-z]{32,44})|eip155:(0x[0-9a-f]{40}))$/;

/**
 * The public key that identifies the owner of `account` (a ledger account) as a provider. An ordinary wallet has its
 * own address. For another account the key is derived from the gateway's identity and never changes.
 */
export function providerIdOf(account: string, identity: Pick<Identity, 'providerId'>): string {
  const wallet = ORDINARY_WALLET.exec(account);
  // Derived ids never clash with those of configured providers, because a provider's name cannot contain a colon.
  return wallet?.[1] ?? wallet?.[2] ?? identity.providerId(`account:${account}`);
}

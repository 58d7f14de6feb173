import type { Identity } from './identity.ts';

const ORDINARY_WALLET = /^(?:solana:([1-9A-HJ-NP-Za-km-z]{32,44})|eip155:(0x[0-9a-f]{40}))$/;

/**
 * The public key that the owner of `account` (a ledger account) is known by as a provider: the wallet's own; for an
 * account without an ordinary wallet one that is derived from the gateway's identity, always the same.
 */
export function providerIdOf(account: string, identity: Pick<Identity, 'providerId'>): string {
  const wallet = ORDINARY_WALLET.exec(account);
  // A colon cannot be in the name of a provider of the configuration file, so the two never meet.
  return wallet?.[1] ?? wallet?.[2] ?? identity.providerId(`account:${account}`);
}

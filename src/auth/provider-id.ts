import bs58 from 'bs58';
import { parseEvmAddress } from '#wire/evm-address';
import { parseAccountId } from './accounts/account-id.ts';
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

/**
 * The public key of the provider that an operator names by this key, by its wallet or by its account (in any form that
 * parseAccountId reads). null for any other text.
 */
export function parseProviderId(text: string, identity: Pick<Identity, 'providerId'>): string | null {
  const address = parseEvmAddress(text);
  if (address !== null) return address;
  if (bs58.decodeUnsafe(text)?.length === 32) return text;
  const account = parseAccountId(text);
  return account === null ? null : providerIdOf(account, identity);
}

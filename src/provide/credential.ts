import type { RouterConfig } from './provider-file.ts';
import { signInHeader } from './wallet/sign-in-header.ts';
import type { Wallet } from './wallet/wallet.ts';

const SIGN_IN_MS = 120_000;

/**
 * Headers that say who the provider is, good for two minutes: the wallet's signature where there is one, else the
 * API key. Secret.
 */
export async function credentialHeaders(
  { url, domain, apiKey }: RouterConfig,
  wallet: Wallet | null,
  now: number,
): Promise<Readonly<Record<string, string>>> {
  if (wallet === null) return { authorization: `Bearer ${apiKey ?? ''}` };
  // A router that is dialled by another name than its own is signed in to by its own.
  const uri = `${new URL(url).protocol}//${domain}`;
  return {
    'sign-in-with-x': await signInHeader(wallet, {
      domain,
      uri,
      statement: 'Provide services.',
      now,
      lifetimeMs: SIGN_IN_MS,
    }),
  };
}

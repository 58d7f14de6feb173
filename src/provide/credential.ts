import type { RouterConfig } from './provider-file.ts';
import { signInHeader } from './wallet/sign-in-header.ts';
import type { Wallet } from './wallet/wallet.ts';

const SIGN_IN_MS = 120_000;

/**
 * Returns the headers that authenticate the provider: the wallet's signature, which is valid for two minutes, or the
 * API key if there is no wallet. Secret.
 */
export async function credentialHeaders(
  { url, domain, apiKey }: RouterConfig,
  wallet: Wallet | null,
  now: number,
): Promise<Readonly<Record<string, string>>> {
  if (wallet === null) return { authorization: `Bearer ${apiKey ?? ''}` };
  // The sign-in names the router's own domain, even if the router is dialled by another name.
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

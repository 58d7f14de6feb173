import { credentialHeaders } from '../credential.ts';
import type { RouterConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/wallet.ts';
import { isObject, oneLine } from '#wire';
import { ask, jsonObject, mustSucceed, wordsOf, type Answer } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';
import { tunnelCheck } from './tunnel.ts';

/** Checks that the router can be reached and accepts the credential. Shows who the provider is there. */
export function routerChecks(router: RouterConfig, wallet: Wallet | null, now: () => number): readonly Check[] {
  const credential = wallet === null ? 'API key' : 'wallet';
  return [
    wallet === null
      ? {
          kind: 'API key',
          name: 'router.api_key',
          run: async () => 'is set, so this provider signs in with it and not with a wallet',
        }
      : { kind: 'wallet', name: wallet.chainId, run: async () => `this provider is ${wallet.providerId}` },
    {
      kind: 'router',
      name: router.url,
      async run() {
        const answer = await ask({ method: 'GET', url: `${router.url}/api/v1/ping` });
        mustSucceed(answer);
        if (!answer.text.includes('pong'))
          throw new ProbeFailure('answers, but is not a tollgate router. Check router.url');
        // This is a read-only page of the provider, so the check changes nothing and doesn't disturb running proxies.
        const own = await ask({
          method: 'GET',
          url: `${router.url}/api/v1/provider/services`,
          headers: await credentialHeaders(router, wallet, now()),
        });
        if (own.status === 401 || own.status === 403)
          throw new ProbeFailure(`answers, but does not accept the ${credential}: ${wordsOf(own.text)}`);
        mustSucceed(own);
        return `answers, and accepts the ${credential}. ${payoutsIn(own)}`;
      },
    },
    tunnelCheck(router, wallet, now),
  ];
}

const PAYOUTS_MAX = 1_000;

/** The router's words about paying earnings. */
function payoutsIn({ text }: Answer): string {
  const { payout_terms: terms } = jsonObject(text, 'the page of this provider');
  return isObject(terms) && typeof terms['summary'] === 'string'
    ? oneLine(terms['summary']).slice(0, PAYOUTS_MAX)
    : 'It does not say how it pays earnings: ask its operator before you sell';
}

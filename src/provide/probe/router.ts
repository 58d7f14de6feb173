import type { RouterConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/index.ts';
import { ask, mustSucceed } from './ask.ts';
import { ProbeFailure, type Check } from './check.ts';

/** The router is there, and who this provider is at it. */
export function routerChecks(router: RouterConfig, wallet: Wallet | null): readonly Check[] {
  return [
    {
      kind: 'wallet',
      name: wallet?.chainId ?? 'none',
      run: async () => (wallet === null ? 'comes with an API key' : `this provider is ${wallet.providerId}`),
    },
    {
      kind: 'router',
      name: router.url,
      async run() {
        const answer = await ask({ method: 'GET', url: `${router.url}/api/v1/ping` });
        mustSucceed(answer);
        if (!answer.text.includes('pong')) throw new ProbeFailure('answers, but is no tollgate: is router.url right?');
        return 'answers';
      },
    },
  ];
}

import type { JsonObject } from '#wire';
import { credentialHeaders } from '../connection.ts';
import { ask, jsonObject, mustSucceed, ProbeFailure, wordsOf } from './ask.ts';
import type { RouterConfig } from '../provider-file.ts';
import type { Wallet } from '../wallet/wallet.ts';

/** The pages of this provider at its router. They do not disturb running proxies. All reject with ProbeFailure. */
export interface OwnPages {
  /** Reads a page. `path` is below `/api/v1`. */
  get(path: string): Promise<JsonObject>;
  /**
   * Withdraws earnings. A wallet signs for it with a nonce of the router. A repetition with the same `reference`
   * withdraws once.
   */
  withdraw(body: JsonObject, reference: string): Promise<JsonObject>;
}

/** The pages, read with the credential of the provider's file: its wallet, or without one its API key. */
export function createOwnPages(router: RouterConfig, wallet: Wallet | null, now: () => number): OwnPages {
  const refuse = ({ status, text }: { readonly status: number; readonly text: string }) => {
    if (status === 401 || status === 403)
      throw new ProbeFailure(
        `answers, but does not accept the ${wallet === null ? 'API key' : 'wallet'}: ${wordsOf(text)}`,
      );
  };
  const get = async (path: string): Promise<JsonObject> => {
    const page = await ask({
      method: 'GET',
      url: `${router.url}/api/v1${path}`,
      headers: await credentialHeaders(router, wallet, now()),
    });
    refuse(page);
    mustSucceed(page);
    return jsonObject(page.text, 'the page of this provider');
  };
  return {
    get,
    async withdraw(body, reference) {
      const nonce = wallet === null ? undefined : String((await get('/auth/nonce'))['nonce']);
      const reply = await ask({
        method: 'POST',
        url: `${router.url}/api/v1/withdrawals`,
        headers: { ...(await credentialHeaders(router, wallet, now(), nonce)), 'idempotency-key': reference },
        body,
      });
      refuse(reply);
      mustSucceed(reply);
      return jsonObject(reply.text, 'the withdrawal');
    },
  };
}

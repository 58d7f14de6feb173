import { expect } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { DOMAIN, evmWallet, inSeconds, signInHeaders, solanaWallet, type TestWallet } from '../../support/wallets.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

/** A gateway that wallets can sign in to, and one wallet of each kind that is always let in. */
export interface World {
  readonly spine: Spine;
  /** Who the gateway says that the sender of these headers is; throws where it does not say. */
  whoIs(headers: Record<string, string>): Promise<string>;
  /**
   * Expects the one answer to whatever is no sign-in, soon; and, now and then, that the gateway lets the right ones in
   * all the same.
   */
  refuses(headers: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
}

/** The CAIP-10 id that answers show of a wallet: on Base and Solana's mainnet, whichever chain it signed on. */
export const shownId = (wallet: TestWallet) =>
  wallet.namespace === 'solana' ? wallet.accountId : wallet.accountId.toLowerCase();
/** The same, of a wallet that signed for this network. */
export const shownOn = (wallet: TestWallet, network: string) => `${network}:${shownId(wallet).split(':').at(-1)}`;

/** Answers later than this would be a way to hold the gateway up. */
const SOON_MS = 1000;
/** Beyond what an id of an account or a word of advice takes. */
const MESSAGE_LENGTH_MAX = 500;

/** So many are refused between two who are right. */
const REFUSED_BETWEEN = process.env['TOLLGATE_DEEP'] === '1' ? 1 : 10;
const TOML = '[sign_in]\nfailures_per_minute = 10000000\n';
const env = { TOLLGATE_SIGN_IN_DOMAINS: `${DOMAIN},ports.test:9443` };

/** `now`: the clock of the gateway, in epoch milliseconds; default the real one. */
export async function startWorld({ now = Date.now }: { readonly now?: () => number } = {}): Promise<World> {
  const elapsed = () => performance.now();
  const spine = await startSpine({ toml: UNHURRIED + TOML, env, now, elapsed });
  const wallets = [solanaWallet(), evmWallet()];
  let controls = 0;
  let refusals = 0;

  const whoIs: World['whoIs'] = async (headers) => {
    const response = await fetch(`${spine.url}/session/balance`, { headers });
    const body = (await response.json()) as { caip_account_id?: string; error?: { message: string } };
    if (response.status !== 200) throw new Error(`${response.status}: ${body.error?.message}`);
    return body.caip_account_id!;
  };
  const control = async () => {
    const wallet = wallets[(controls += 1) % wallets.length]!;
    const times = { issuedAt: inSeconds(0, now()), expirationTime: inSeconds(600, now()) };
    expect(await whoIs(await signInHeaders(wallet, times))).toBe(shownId(wallet));
  };

  await control();
  return {
    spine,
    whoIs,
    async refuses(headers) {
      const from = performance.now();
      const response = await fetch(`${spine.url}/session/balance`, { headers });
      const body: unknown = await response.json();
      expect(performance.now() - from).toBeLessThan(atThisLoad(SOON_MS));
      expect({ status: response.status, body }).toEqual({
        status: 401,
        body: {
          error: { message: expect.stringMatching(/^[\x20-\x7e…]+$/), type: 'unauthorized', code: 401, param: null },
        },
      });
      expect((body as { error: { message: string } }).error.message.length).toBeLessThan(MESSAGE_LENGTH_MAX);
      expect(response.headers.get('www-authenticate')).toMatch(/SIWx|Bearer/);
      refusals += 1;
      if (refusals % REFUSED_BETWEEN === 0) await control();
    },
    async stop() {
      await control();
      // Nobody was taken for anybody: no call reached a provider, no money moved.
      expect(spine.provider.log).toEqual([]);
      expect(await spine.faults()).toEqual([]);
      await spine.stop();
    },
  };
}

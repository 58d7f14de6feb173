import type { Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { PaymentRequirements } from '../../../../src/billing/chains/chain.ts';
import { startAnvil, type Anvil } from '../../../support/chain/anvil.ts';
import { deployEvmToken, freshKey, signPayment, type EvmToken } from '../../../support/chain/evm-token.ts';
import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { evmWallet, signInHeaders, type TestWallet } from '../../../support/wallets.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

/** A whole gateway with one EVM chain behind it, on which everything is final at once. */
export interface FundsWorld {
  readonly anvil: Anvil;
  readonly token: EvmToken;
  readonly network: string;
  readonly treasury: Hex;
  readonly spine: Spine;
  /** A wallet that signs in and has this much USDC. */
  wallet(usdc?: bigint): Promise<TestWallet & { readonly signer: PrivateKeyAccount }>;
  /** Signs the terms of a 402. */
  pay(signer: PrivateKeyAccount, terms: Terms): Promise<Record<string, string>>;
  call<T = Body>(
    method: string,
    path: string,
    options?: { readonly headers?: Record<string, string>; readonly body?: unknown },
  ): Promise<Answer<T>>;
  /** As the operator, below `/admin/v1`. */
  admin<T = Body>(method: string, path: string, body?: unknown): Promise<Answer<T>>;
  /** Headers that sign a wallet in for something sensitive. */
  fresh(wallet: TestWallet): Promise<Record<string, string>>;
  nonce(): Promise<string>;
  /** Asks again until the answer is as it should be. */
  until<T>(ask: () => Promise<T>, is: (answer: T) => boolean): Promise<T>;
  stop(): Promise<void>;
}

export interface Answer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

export interface Terms {
  readonly x402Version: number;
  readonly error: string;
  readonly accepts: readonly PaymentRequirements[];
}

/** Whatever is in an answer: tests say what they expect of it. */
export interface Body {
  readonly data: Record<string, unknown> & { readonly id: string };
  readonly next?: string | null;
  readonly error?: { readonly message: string; readonly type: string; readonly param: string | null };
}

export const termsOf = (headers: Headers): Terms =>
  JSON.parse(Buffer.from(headers.get('payment-required')!, 'base64').toString()) as Terms;
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

export interface FundsWorldOptions {
  readonly chain?: string;
  readonly payments?: string;
  readonly toml?: string;
  readonly dataDir?: string;
}

export async function openFundsWorld(options: FundsWorldOptions = {}): Promise<FundsWorld> {
  const anvil = await startAnvil();
  const token = await deployEvmToken(anvil);
  const treasury = freshKey();
  await anvil.setBalance(treasury.address, 10n ** 19n);
  const network = `eip155:${anvil.chainId}`;
  const spine = await startSpine({
    credit: '0',
    env: { RPC_URL: anvil.url, TREASURY_KEY: Buffer.from(treasury.secret).toString('hex') },
    ...(options.dataDir === undefined ? {} : { dataDir: options.dataDir }),
    toml: `${UNHURRIED}${options.toml ?? ''}
[payments]
watch_ms = 100
${options.payments ?? 'address_cooldown_s = 0'}
[[chains]]
network = "${network}"
rpc_url = "std::env::RPC_URL"
private_key = "std::env::TREASURY_KEY"
asset = "${token.address}"
asset_name = "${token.name}"
asset_version = "${token.version}"
finality = 1
min_topup = 0.5
topup_max = 50
${options.chain ?? ''}
`,
  });

  const call: FundsWorld['call'] = async <T>(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
  ) => {
    const response = await fetch(spine.url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as T };
  };
  const nonce = async () => (await call<{ nonce: string }>('GET', '/auth/nonce')).body.nonce;
  return {
    anvil,
    token,
    network,
    treasury: treasury.address,
    spine,
    async wallet(usdc = 100_000_000n) {
      const signer = freshKey();
      await token.mint(signer.address, usdc);
      return { ...evmWallet(signer.secret), signer };
    },
    async pay(signer, { accepts }) {
      const payment = await signPayment(token, signer, accepts[0]!);
      return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
    },
    call,
    admin: (method, path, body) =>
      call(method, `/../../admin/v1${path}`, {
        headers: bearer(spine.adminKey),
        ...(body === undefined ? {} : { body }),
      }),
    nonce,
    fresh: async (wallet) => signInHeaders(wallet, { nonce: await nonce() }),
    async until(ask, is) {
      const end = performance.now() + atThisLoad(15_000);
      for (;;) {
        const answer = await ask();
        if (is(answer)) return answer;
        if (performance.now() > end) throw new Error(`it did not come to be: ${JSON.stringify(answer)}`);
        // The gateway looks at its chains by itself, and tells nobody when.
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    },
    async stop() {
      await spine.stop();
      await anvil.stop();
    },
  };
}

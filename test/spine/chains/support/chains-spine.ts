import { x402Client, wrapFetchWithPayment } from '@x402/fetch';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import bs58 from 'bs58';
import { expect } from 'vitest';
import { toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { escrowOf } from '#billing';
import { BASE_SEPOLIA_USDC } from '../../../support/chain/evm-token.ts';
import { evmMoney, solanaMoney, type EvmMoney, type MoneyChain, type SolanaMoney } from '../../../support/chain/money-chain.ts';
import { startSpine, type Spine, type SpineOptions } from '../../../support/spine.ts';
import { evmWallet, signInHeaders, solanaWallet, type TestWallet } from '../../../support/wallets.ts';

/** The least that one payment is, micro-USD. */
export const LEAST = 500_000n;

/** A wallet with USDC and no account, and clients of x402 as they come: with nothing set but its key. */
export interface Payer extends TestWallet {
  readonly chain: MoneyChain;
  readonly client: x402Client;
  /** `@x402/fetch`. */
  readonly ask: typeof fetch;
  /** USDC that it has on its chain, micro-USD. */
  held(): Promise<bigint>;
}

/** A gateway that takes payments on an anvil and on a Solana twin, each with USDC where clients of x402 look for it. */
export interface ChainsSpine {
  readonly spine: Spine;
  readonly evm: EvmMoney;
  readonly solana: SolanaMoney;
  payer(chain: MoneyChain, usdc?: bigint): Promise<Payer>;
  /** Headers that sign a wallet in with a nonce of the gateway's. */
  fresh(wallet: TestWallet): Promise<Record<string, string>>;
  /** Available in the balance of an account, micro-USD. */
  available(account: string): Promise<bigint>;
  /** Asks until there is an answer, while blocks come on both chains, so that what was done becomes final. */
  later<T>(what: string, ask: () => Promise<T | null>): Promise<T>;
  /** Waits until nothing is on its way on any chain. Then the books are in order, and what they owe is what the treasuries hold. */
  balanced(): Promise<void>;
  stop(): Promise<void>;
}

/** Without limits that tests of money meet. */
export const UNLIMITED =
  '[limits]\nrequests_per_minute = 1000000\nburst = 1000000\nanonymous_requests_per_minute = 1000000\n[sign_in]\nfailures_per_minute = 1000000\n';

const BETWEEN_BLOCKS_MS = 300;

/** The block of a chain in the gateway's file. */
export function chainToml({ setup, url }: MoneyChain): string {
  const key = setup.network.startsWith('eip155:') ? toHex(setup.treasuryKey) : bs58.encode(setup.treasuryKey);
  return `
[[chains]]
network = "${setup.network}"
rpc_url = "${url}"
private_key = "${key}"
min_topup = 0.5
withdrawal_min = 0.000001
`;
}

/** `toml` goes before the blocks of the chains. */
export async function startChainsSpine({ toml = '', ...options }: SpineOptions = {}): Promise<ChainsSpine> {
  const [evm, solana] = await Promise.all([evmMoney({ token: { at: BASE_SEPOLIA_USDC } }), solanaMoney()]);
  const chains = [evm, solana];
  const spine = await startSpine({
    credit: '0',
    ...options,
    toml: `${UNLIMITED}[payments]\naddress_cooldown_s = 0\nwatch_ms = 100\n${toml}${chains.map(chainToml).join('')}`,
  });
  const later: ChainsSpine['later'] = async (what, ask) => {
    let next = 0;
    return until(what, async () => {
      // Blocks of an anvil are a second apart: too many, and its time runs away from the payments that are signed.
      if (performance.now() >= next) {
        await Promise.all(chains.map((chain) => chain.finalize()));
        next = performance.now() + BETWEEN_BLOCKS_MS;
      }
      return ask();
    });
  };
  const admin = async <T>(path: string) => {
    const response = await fetch(`${spine.origin}/admin/v1${path}`, { headers: { authorization: `Bearer ${spine.adminKey}` } });
    return ((await response.json()) as { data: T }).data;
  };

  return {
    spine,
    evm,
    solana,
    async payer(chain, usdc = 5_000_000n) {
      const { wallet, client } = await newPayer(chain);
      if (usdc > 0n) await chain.mint(wallet.address, usdc);
      return { ...wallet, chain, client, ask: wrapFetchWithPayment(fetch, client), held: () => chain.balanceOf(wallet.address) };
    },
    async fresh(wallet) {
      const { nonce } = (await (await fetch(`${spine.url}/auth/nonce`)).json()) as { nonce: string };
      return signInHeaders(wallet, { nonce });
    },
    available: async (account) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n,
    later,
    async balanced() {
      await spine.quiet();
      const report = await later('nothing is on its way', async () => {
        const found = await admin<AuditView>('/audit?chain=true');
        return found.chains.chains.every(({ open, ok }) => ok === true && Object.values(open).every((count) => count === 0)) ? found : null;
      });
      expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
      for (const [index, { network, held, owed }] of report.chains.chains.entries()) {
        expect({ network, held, owed }).toEqual({ network: chains[index]!.network, held, owed: held });
        expect(BigInt(held!)).toBe(await chains[index]!.balanceOf(chains[index]!.treasury));
      }
    },
    async stop() {
      await spine.stop();
      await Promise.all(chains.map((chain) => chain.stop()));
    },
  };
}

async function newPayer(chain: MoneyChain): Promise<{ readonly wallet: TestWallet; readonly client: x402Client }> {
  const client = new x402Client();
  if (chain.network.startsWith('eip155:')) {
    const wallet = evmWallet();
    client.register(chain.network as 'eip155:0', new ExactEvmScheme(privateKeyToAccount(toHex(wallet.secret))));
    return { wallet, client };
  }
  const wallet = solanaWallet();
  client.register(chain.network as 'solana:0', new ExactSvmScheme(await createKeyPairSignerFromBytes(wallet.secret), { rpcUrl: chain.url }));
  return { wallet, client };
}

/** What the operator is told of the books. */
export interface AuditView {
  readonly checks: readonly { readonly ok: boolean }[];
  readonly chains: {
    readonly chains: readonly {
      readonly network: string;
      readonly ok: boolean | null;
      readonly held: number | null;
      readonly owed: number;
      readonly open: Readonly<Record<string, number>>;
    }[];
  };
}

/** Asks again, as nobody tells when, until there is an answer. */
export async function until<T>(what: string, ask: () => Promise<T | null>, withinMs = 20_000): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

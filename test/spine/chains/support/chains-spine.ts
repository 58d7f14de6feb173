import bs58 from 'bs58';
import { toHex } from 'viem';
import { escrowOf } from '#billing';
import { BASE_SEPOLIA_USDC } from '../../../support/chain/evm-token.ts';
import {
  evmMoney,
  solanaMoney,
  type EvmMoney,
  type MoneyChain,
  type SolanaMoney,
} from '../../../support/chain/money-chain.ts';
import { startSpine, type Spine, type SpineOptions } from '../../../support/spine.ts';
import { signInHeaders, type TestWallet } from '../../../support/wallets.ts';
import { expectBalanced } from './books.ts';

/** The least that one payment is, micro-USD. */
export const LEAST = 500_000n;

/**
 * A gateway in this process that takes payments on an anvil and on a Solana twin, each with USDC where clients of
 * x402 look for it.
 */
export interface ChainsSpine {
  readonly spine: Spine;
  readonly evm: EvmMoney;
  readonly solana: SolanaMoney;
  readonly chains: readonly MoneyChain[];
  /** Available in the balance of an account, micro-USD. */
  available(account: string): Promise<bigint>;
  /** Waits until nothing is on its way. Then the books are right. */
  balanced(): Promise<void>;
  stop(): Promise<void>;
}

/** Without limits that tests of money meet, and what chains say is seen soon. */
export const CHAINS_TOML = `
[limits]
requests_per_minute = 1000000
burst = 1000000
anonymous_requests_per_minute = 1000000
[sign_in]
failures_per_minute = 1000000
[payments]
address_cooldown_s = 0
watch_ms = 100
`;

/** An EVM chain that a gateway knows as Base Sepolia, with its USDC. */
export const baseSepolia = (): Promise<EvmMoney> => evmMoney({ token: { at: BASE_SEPOLIA_USDC } });

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

/** `toml`: more blocks. */
export async function startChainsSpine({ toml = '', ...options }: SpineOptions = {}): Promise<ChainsSpine> {
  const [evm, solana] = await Promise.all([baseSepolia(), solanaMoney()]);
  const chains = [evm, solana];
  const spine = await startSpine({
    credit: '0',
    ...options,
    toml: CHAINS_TOML + chains.map(chainToml).join('') + toml,
  });
  return {
    spine,
    evm,
    solana,
    chains,
    available: async (account) => (await spine.app.ledger.balance(escrowOf(account)))?.available ?? 0n,
    async balanced() {
      await spine.quiet();
      await expectBalanced(spine, chains);
    },
    async stop() {
      await spine.stop();
      await Promise.all(chains.map((chain) => chain.stop()));
    },
  };
}

/** Headers that sign a wallet in with a nonce of the gateway's. `url`: with `/api/v1`. */
export async function freshSignIn(url: string, wallet: TestWallet): Promise<Record<string, string>> {
  const { nonce } = (await (await fetch(`${url}/auth/nonce`)).json()) as { nonce: string };
  return signInHeaders(wallet, { nonce });
}

/**
 * The two chains of the demo, each with USDC on it, on free ports of this machine: a real EVM node (anvil), and a
 * real Solana virtual machine behind JSON-RPC.
 */
import { createKeyPairSignerFromBytes } from '@solana/kit';
import bs58 from 'bs58';
import nacl from 'tweetnacl';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startAnvil } from '../../test/support/chain/anvil.ts';
import { BASE_SEPOLIA_USDC, deployEvmToken } from '../../test/support/chain/evm-token.ts';
import { startSolanaTwin } from '../../test/support/chain/solana-twin.ts';

/** A wallet of either family. */
export interface DemoWallet {
  readonly address: string;
  /** As a configuration file takes it. */
  readonly privateKey: string;
}

export interface DemoChain {
  readonly title: string;
  /** CAIP-2. */
  readonly network: string;
  readonly rpcUrl: string;
  wallet(): Promise<DemoWallet>;
  /** Micro-USD out of nowhere. */
  mint(to: string, amount: bigint): Promise<void>;
  /** What transactions cost, for whoever sends them. */
  fuel(address: string): Promise<void>;
  balanceOf(address: string): Promise<bigint>;
  /** Time passes, until what happened is final. */
  finalize(): Promise<void>;
  stop(): Promise<void>;
}

export async function startEvm(): Promise<DemoChain> {
  const anvil = await startAnvil();
  const token = await deployEvmToken(anvil, { at: BASE_SEPOLIA_USDC });
  await anvil.mine(3);
  return {
    title: 'Base Sepolia (anvil)',
    network: 'eip155:84532',
    rpcUrl: anvil.url,
    async wallet() {
      const privateKey = generatePrivateKey();
      return { address: privateKeyToAccount(privateKey).address, privateKey };
    },
    mint: (to, amount) => token.mint(to as `0x${string}`, amount),
    fuel: (address) => anvil.setBalance(address, 10n ** 18n),
    balanceOf: (address) => token.balanceOf(address as `0x${string}`),
    finalize: () => anvil.mine(3),
    stop: () => anvil.stop(),
  };
}

export async function startSolana(): Promise<DemoChain> {
  const twin = await startSolanaTwin({ slotMs: 50 });
  return {
    title: 'Solana devnet (litesvm)',
    network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
    rpcUrl: twin.url,
    async wallet() {
      const { secretKey } = nacl.sign.keyPair();
      const { address } = await createKeyPairSignerFromBytes(secretKey);
      return { address, privateKey: bs58.encode(secretKey) };
    },
    mint: async (to, amount) => twin.fundUsdc(to, amount),
    fuel: async (address) => twin.fundSol(address),
    balanceOf: async (address) => twin.chain.tokens(address),
    finalize: async () => twin.advance(70),
    stop: () => twin.close(),
  };
}

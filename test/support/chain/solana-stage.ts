import { createSolanaChain } from '../../../src/billing/chains/solana/solana-chain.ts';
import type { Chain, ChainSetup } from '../../../src/billing/chains/chain.ts';
import { DEVNET, USDC } from './solana-accounts.ts';
import { startSolanaTwin, type SolanaTwin, type TwinOptions } from './solana-twin.ts';
import { newPayer, type Payer } from './solana-wallet.ts';

/** A Solana twin, a treasury with SOL, and the opened chain. */
export interface SolanaStage {
  readonly twin: SolanaTwin;
  readonly treasury: Payer;
  readonly chain: Chain;
  /** The same chain as another gateway sees it. */
  another(changed?: Partial<ChainSetup>): Chain;
  /** Makes a wallet with this much USDC and no SOL. */
  payer(microUsd?: bigint): Promise<Payer>;
  close(): Promise<void>;
}

export async function solanaStage(options: TwinOptions = {}): Promise<SolanaStage> {
  const { confirmAfter = 0, ...rest } = options;
  const twin = await startSolanaTwin(rest);
  const treasury = await newPayer();
  twin.fundSol(treasury.address);
  const setup = setupOf(twin, treasury);
  const chains: Chain[] = [];
  const another = (changed: Partial<ChainSetup> = {}) => {
    const chain = createSolanaChain({ ...setup, ...changed });
    chains.push(chain);
    return chain;
  };
  const chain = another();
  await chain.open();
  twin.chain.confirmAfter = confirmAfter;
  // Wallets take their blockhash from the finalized state. The treasury's account must be part of it.
  twin.finalize();
  return {
    twin,
    treasury,
    chain,
    another,
    async payer(microUsd = 10_000_000n) {
      const payer = await newPayer();
      twin.fundUsdc(payer.address, microUsd);
      return payer;
    },
    async close() {
      for (const one of chains) one.close();
      await twin.close();
    },
  };
}

export function setupOf(twin: SolanaTwin, treasury: Payer): ChainSetup {
  return {
    network: DEVNET,
    rpcUrl: twin.url,
    asset: USDC,
    assetName: null,
    assetVersion: null,
    treasuryKey: treasury.secret,
    facilitator: 'in-process',
    finality: null,
    opensAccounts: true,
    timeoutMs: 2_000,
    now: () => twin.chain.timeAt(twin.chain.slot),
  };
}

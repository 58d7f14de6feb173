import type { Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Chain, ChainSetup, SignedPayment } from '../../../src/billing/chains/chain.ts';
import { createEvmChain } from '../../../src/billing/chains/evm/evm-chain.ts';
import { startAnvil } from './anvil.ts';
import type { Anvil, AnvilOptions } from './anvil.ts';
import { receiptOf } from './evm-receipt.ts';
import { deployEvmToken, freshKey, signPayment } from './evm-token.ts';
import type { AuthorizationTerms, EvmToken, TokenOptions } from './evm-token.ts';

/** A chain under test, with its node, its token, and a treasury that can pay for gas. */
export interface EvmWorld {
  readonly anvil: Anvil;
  readonly token: EvmToken;
  readonly treasury: PrivateKeyAccount & { readonly secret: Uint8Array };
  readonly setup: ChainSetup;
  readonly chain: Chain;
  /** Another chain object for the same treasury. */
  chainWith(changes: Partial<ChainSetup>): Chain;
  /** Another world on the same node, with its own token and treasury. */
  beside(options?: TokenOptions): Promise<EvmWorld>;
  /** Makes an account that holds this amount. */
  payer(amount?: bigint): Promise<PrivateKeyAccount>;
  /** Makes a payment that `from` has signed, in the form that the chain reads. */
  payment(from: PrivateKeyAccount, amount?: bigint, terms?: Partial<AuthorizationTerms>): Promise<SignedPayment>;
  /** Waits until the submitted transaction is in a block, because anvil mines it after it has answered. */
  mined<T extends { readonly transaction: string | null }>(handed: Promise<T>): Promise<T>;
  held(): Promise<bigint>;
  stop(): Promise<void>;
}

export async function startEvmWorld(options: AnvilOptions & { readonly token?: TokenOptions } = {}): Promise<EvmWorld> {
  const anvil = await startAnvil(options);
  return worldOn(anvil, options.token ?? {});
}

async function worldOn(anvil: Anvil, options: TokenOptions): Promise<EvmWorld> {
  const token = await deployEvmToken(anvil, options);
  const treasury = freshKey();
  await anvil.setBalance(treasury.address, 10n ** 19n);
  const setup: ChainSetup = {
    network: `eip155:${anvil.chainId}`,
    rpcUrl: anvil.url,
    asset: token.address,
    assetName: token.name,
    assetVersion: token.version,
    treasuryKey: treasury.secret,
    facilitator: 'in-process',
    finality: null,
    timeoutMs: 5000,
    now: Date.now,
  };
  const opened: Chain[] = [];
  const chainWith = (changes: Partial<ChainSetup>): Chain => {
    const chain = createEvmChain({ ...setup, ...changes });
    opened.push(chain);
    return chain;
  };
  const chain = chainWith({});
  return {
    anvil,
    token,
    treasury,
    setup,
    chain,
    chainWith,
    beside: (token = {}) => worldOn(anvil, token),
    async payer(amount = 100_000_000n) {
      const account = freshKey();
      await token.mint(account.address, amount);
      return account;
    },
    payment: async (from, amount = 1_000_000n, terms = {}) =>
      chain.read(await signPayment(token, from, await chain.requirements(amount, null), terms)),
    async mined(handed) {
      const given = await handed;
      if (given.transaction !== null) await receiptOf(anvil, given.transaction as Hex);
      return given;
    },
    held: () => token.balanceOf(treasury.address),
    async stop() {
      for (const one of opened) one.close();
      await anvil.stop();
    },
  };
}

import { ExactEvmScheme } from '@x402/evm/exact/client';
import { toBytes, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import type { MicroUsd } from '#billing/amounts';
import type { PaymentPayload } from '#chains';
import type { ChainSetup, PaymentRequirements } from '../../../src/billing/chains/chain.ts';
import { startAnvil, type Anvil, type AnvilOptions } from './anvil.ts';
import { deployEvmToken, type EvmToken, type TokenOptions } from './evm-token.ts';
import { DEVNET, USDC } from './solana-accounts.ts';
import { startSolanaTwin, type SolanaTwin, type TwinOptions } from './solana-twin.ts';
import { newPayer, pay, send, transfer } from './solana-wallet.ts';

/** A wallet with USDC. */
export interface Payer {
  readonly address: string;
  /** The payer's account in the ledger. */
  readonly account: string;
  /** Signs a payment for the terms of a gateway. */
  sign(requirements: PaymentRequirements): Promise<PaymentPayload>;
}

/** A chain of either family with a token, and a treasury that can pay for its transactions. */
export interface MoneyChain {
  readonly network: string;
  readonly url: string;
  readonly treasury: string;
  /** The part of the chain's setup that differs from chain to chain. */
  readonly setup: Pick<ChainSetup, 'network' | 'asset' | 'assetName' | 'assetVersion' | 'treasuryKey'>;
  payer(usdc: MicroUsd): Promise<Payer>;
  balanceOf(address: string): Promise<MicroUsd>;
  mint(address: string, usdc: MicroUsd): Promise<void>;
  /**
   * Makes a plain transfer to each of the addresses. On Solana it is one transaction. Resolves when it is in a block.
   */
  send(payer: Payer, to: string | readonly string[], usdc: MicroUsd): Promise<void>;
  /** Makes another treasury that can pay for its transactions. */
  newTreasury(): Promise<{ readonly address: string; readonly key: Uint8Array }>;
  /** Makes blocks, so that earlier transactions become final. */
  finalize(): Promise<void>;
  stop(): Promise<void>;
}

export interface EvmMoney extends MoneyChain {
  readonly anvil: Anvil;
  readonly token: EvmToken;
  /** Returns the payer's wallet. */
  walletOf(payer: Payer): PrivateKeyAccount;
}

export async function evmMoney(
  options: { readonly anvil?: AnvilOptions; readonly token?: TokenOptions } = {},
): Promise<EvmMoney> {
  const anvil = await startAnvil(options.anvil);
  const token = await deployEvmToken(anvil, options.token);
  // Makes blocks until the token is part of the final state.
  await anvil.mine(2 * (options.anvil?.slotsInAnEpoch ?? 1) + 1);
  const key = generatePrivateKey();
  const treasury = privateKeyToAccount(key).address;
  await anvil.setBalance(treasury, 10n ** 20n);
  const network = `eip155:${anvil.chainId}`;
  const wallets = new Map<string, PrivateKeyAccount>();
  return {
    anvil,
    token,
    network,
    url: anvil.url,
    treasury,
    setup: {
      network,
      asset: token.address,
      assetName: token.name,
      assetVersion: token.version,
      treasuryKey: toBytes(key),
    },
    async payer(usdc) {
      const wallet = privateKeyToAccount(generatePrivateKey());
      wallets.set(wallet.address, wallet);
      if (usdc > 0n) await token.mint(wallet.address, usdc);
      return {
        address: wallet.address,
        account: `eip155:${wallet.address.toLowerCase()}`,
        async sign(requirements) {
          const { payload } = await new ExactEvmScheme(wallet).createPaymentPayload(2, requirements as never);
          return { x402Version: 2, accepted: requirements, payload };
        },
      };
    },
    walletOf: ({ address }) => wallets.get(address)!,
    balanceOf: (address) => token.balanceOf(address as Hex),
    mint: (address, usdc) => token.mint(address as Hex, usdc),
    async send({ address }, to, usdc) {
      for (const one of [to].flat()) await token.transfer(wallets.get(address)!, one as Hex, usdc);
    },
    async newTreasury() {
      const fresh = generatePrivateKey();
      const { address } = privateKeyToAccount(fresh);
      await anvil.setBalance(address, 10n ** 20n);
      return { address, key: toBytes(fresh) };
    },
    // Only a few blocks, because anvil loses state for a later reorganisation if there are many.
    finalize: () => anvil.mine(3),
    stop: () => anvil.stop(),
  };
}

export interface SolanaMoney extends MoneyChain {
  readonly twin: SolanaTwin;
}

export async function solanaMoney(options: TwinOptions = {}): Promise<SolanaMoney> {
  const twin = await startSolanaTwin(options);
  const treasury = await newPayer();
  const payers = new Map<string, Awaited<ReturnType<typeof newPayer>>>();
  twin.fundSol(treasury.address);
  // Creates the account that a first start would create, and makes it final, so that the test begins after that.
  twin.fundUsdc(treasury.address, 0n);
  twin.finalize();
  return {
    twin,
    network: DEVNET,
    url: twin.url,
    treasury: treasury.address,
    setup: { network: DEVNET, asset: USDC, assetName: null, assetVersion: null, treasuryKey: treasury.secret },
    async payer(usdc) {
      const payer = await newPayer();
      payers.set(payer.address, payer);
      if (usdc > 0n) twin.fundUsdc(payer.address, usdc);
      return {
        address: payer.address,
        account: `solana:${payer.address}`,
        sign: (requirements) => pay(twin, payer, requirements),
      };
    },
    balanceOf: async (address) => twin.chain.tokens(address),
    mint: async (address, usdc) => twin.fundUsdc(address, usdc),
    async send({ address }, to, usdc) {
      const payer = payers.get(address)!;
      twin.fundSol(payer.address);
      const transfers = [to].flat().map((one) => transfer({ from: payer.address, to: one as never, amount: usdc }));
      await send(twin, payer, transfers);
    },
    async newTreasury() {
      const fresh = await newPayer();
      twin.fundSol(fresh.address);
      twin.fundUsdc(fresh.address, 0n);
      twin.finalize();
      return { address: fresh.address, key: fresh.secret };
    },
    // More slots than a gateway stays behind finality.
    finalize: async () => twin.advance(70),
    stop: () => twin.close(),
  };
}

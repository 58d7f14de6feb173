import { wrapFetchWithPayment, x402Client, type PaymentPayload } from '@x402/fetch';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { ExactSvmScheme } from '@x402/svm/exact/client';
import { createKeyPairSignerFromBytes } from '@solana/kit';
import { toHex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { MoneyChain } from '../../../support/chain/money-chain.ts';
import { evmWallet, solanaWallet, type TestWallet } from '../../../support/wallets.ts';

/** A wallet with USDC and no account, and clients of x402 as they come: with nothing set but its key. */
export interface Payer extends TestWallet {
  readonly chain: MoneyChain;
  readonly client: x402Client;
  /** `@x402/fetch`. */
  readonly ask: typeof fetch;
  /** USDC that it has on its chain, micro-USD. */
  held(): Promise<bigint>;
}

/** USDC that a payer has to begin with, micro-USD. */
export const PURSE = 5_000_000n;

export async function fundPayer(chain: MoneyChain): Promise<Payer> {
  const client = new x402Client();
  let wallet: TestWallet;
  if (chain.network.startsWith('eip155:')) {
    wallet = evmWallet();
    client.register(chain.network as 'eip155:0', new ExactEvmScheme(privateKeyToAccount(toHex(wallet.secret))));
  } else {
    wallet = solanaWallet();
    client.register(
      chain.network as 'solana:0',
      new ExactSvmScheme(await createKeyPairSignerFromBytes(wallet.secret), { rpcUrl: chain.url }),
    );
  }
  await chain.mint(wallet.address, PURSE);
  return {
    ...wallet,
    chain,
    client,
    ask: wrapFetchWithPayment(fetch, client),
    held: () => chain.balanceOf(wallet.address),
  };
}

/** The header of a payment. */
export const paymentHeaders = (payment: PaymentPayload) => ({
  'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64'),
});

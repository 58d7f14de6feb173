import { randomBytes } from 'node:crypto';
import { getBase64EncodedWireTransaction, type Address } from '@solana/kit';
import type { PaymentRequirements } from '../chain.ts';
import type { SolanaNode } from './node.ts';
import { compiledOf } from './sign.ts';
import { transferWithMemo } from './transfer.ts';

/** Compute units for a transfer and a memo that holds an account. */
const BUDGET = { units: 80_000n, price: 1n };
const NONCE_BYTES = 16;

/**
 * The transaction that pays requirements of `exact`, in base64, for its payer to sign. The gateway builds it because a
 * web page has no node to get a blockhash from. The memo is that of the requirements, else a random one, so that two
 * payments are never equal.
 */
export async function draftPayment(
  { asset, payTo, amount, extra }: PaymentRequirements,
  payer: Address,
  node: SolanaNode,
): Promise<string> {
  const lifetime = await node.latestBlockhash();
  const memo = typeof extra['memo'] === 'string' ? extra['memo'] : randomBytes(NONCE_BYTES).toString('hex');
  const paid = { from: payer, to: payTo as Address, mint: asset as Address, amount: BigInt(amount), memo };
  return getBase64EncodedWireTransaction(
    compiledOf(extra['feePayer'] as Address, BUDGET, transferWithMemo(paid), lifetime),
  );
}

import { randomBytes } from 'node:crypto';
import {
  appendTransactionMessageInstructions,
  compileTransaction,
  createTransactionMessage,
  getBase64EncodedWireTransaction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Address,
  type Blockhash,
} from '@solana/kit';
import { getTransferCheckedInstruction } from '@solana-program/token';
import type { PaymentRequirements } from '../chain.ts';
import { MEMO_PROGRAM, tokenAccountAddress } from './address.ts';
import type { SolanaNode } from './node.ts';
import { computeBudget } from './sign.ts';

/** A transfer and a memo of the length of an account. */
const COMPUTE_UNITS = 80_000n;
const MICRO_LAMPORTS_PER_UNIT = 1n;
const DECIMALS = 6;
const NONCE_BYTES = 16;

/**
 * The transaction that pays requirements of `exact`, in base64, for its payer to sign: a page cannot ask a node for a
 * blockhash. The memo is that of the requirements, else a random one, so that two payments are never the same.
 */
export async function draftPayment(
  { asset, payTo, amount, extra }: PaymentRequirements,
  payer: Address,
  node: SolanaNode,
): Promise<string> {
  const mint = asset as Address;
  const { blockhash, lastValidBlockHeight } = await node.latestBlockhash();
  const memo = typeof extra['memo'] === 'string' ? extra['memo'] : randomBytes(NONCE_BYTES).toString('hex');
  const transfer = getTransferCheckedInstruction({
    source: tokenAccountAddress(payer, mint),
    mint,
    destination: tokenAccountAddress(payTo as Address, mint),
    authority: { address: payer, signTransactions: () => Promise.resolve([]) },
    amount: BigInt(amount),
    decimals: DECIMALS,
  });
  return pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayer(extra['feePayer'] as Address, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: blockhash as Blockhash, lastValidBlockHeight }, message),
    (message) =>
      appendTransactionMessageInstructions(
        [
          computeBudget(2, COMPUTE_UNITS, 4),
          computeBudget(3, MICRO_LAMPORTS_PER_UNIT, 8),
          transfer,
          { programAddress: MEMO_PROGRAM, data: Buffer.from(memo, 'utf8') },
        ],
        message,
      ),
    compileTransaction,
    getBase64EncodedWireTransaction,
  );
}

import { randomBytes } from 'node:crypto';
import {
  appendTransactionMessageInstructions,
  compileTransaction,
  createTransactionMessage,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Address,
  type Blockhash,
  type Instruction,
  getBase64EncodedWireTransaction,
} from '@solana/kit';
import bs58 from 'bs58';
import { getTransferCheckedInstruction } from '@solana-program/token';
import { COMPUTE_BUDGET_PROGRAM, type TreasuryKey, DECIMALS, MEMO_PROGRAM, tokenAccountAddress } from './address.ts';
import type { PaymentRequirements } from '../chain.ts';
import type { SolanaNode } from './node.ts';

/** Compute units to find and create an associated account, for a transfer and a memo. */
const BUDGET: ComputeBudget = { units: 150_000n, price: 20_000n };

/** The highest cost in lamports of a transaction of the gateway, without the rent of the accounts that it creates. */
export const OWN_FEE_LAMPORTS = 5_000n + (BUDGET.units * BUDGET.price) / 1_000_000n;

interface ComputeBudget {
  readonly units: bigint;
  /** Micro-lamports per unit. */
  readonly price: bigint;
}

interface Lifetime {
  readonly blockhash: string;
  readonly lastValidBlockHeight: bigint;
}

/** Compiles a transaction of these instructions. It is not signed. */
function compiledOf(
  feePayer: Address,
  { units, price }: ComputeBudget,
  instructions: readonly Instruction[],
  { blockhash, lastValidBlockHeight }: Lifetime,
) {
  return pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayer(feePayer, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: blockhash as Blockhash, lastValidBlockHeight }, message),
    (message) =>
      appendTransactionMessageInstructions(
        [computeBudget(2, units, 4), computeBudget(3, price, 8), ...instructions],
        message,
      ),
    compileTransaction,
  );
}

/** Signs a transaction of the treasury without sending it. Returns the transaction in base64 and its id. */
export function signOwn(
  key: TreasuryKey,
  instructions: readonly Instruction[],
  lifetime: Lifetime,
): { readonly base64: string; readonly id: string } {
  const { messageBytes } = compiledOf(key.address, BUDGET, instructions, lifetime);
  const message = Uint8Array.from(messageBytes);
  const signature = key.sign(message);
  return {
    base64: Buffer.concat([Uint8Array.of(1), signature, message]).toString('base64'),
    id: bs58.encode(signature),
  };
}

/** The instruction SetComputeUnitLimit (2, u32) or SetComputeUnitPrice (3, u64). */
function computeBudget(kind: number, value: bigint, bytes: number): Instruction {
  const data = Buffer.alloc(9);
  data[0] = kind;
  data.writeBigUInt64LE(value, 1);
  return { programAddress: COMPUTE_BUDGET_PROGRAM, data: Uint8Array.from(data.subarray(0, 1 + bytes)) };
}

interface Transfer {
  /** The wallets. The transfer is between their associated token accounts. */
  readonly from: Address;
  readonly to: Address;
  readonly mint: Address;
  readonly amount: bigint;
  readonly memo: string;
}

/** A placeholder for APIs that require a signer. The compiled message is signed, not its instructions. */
export const stubSigner = (address: Address) => ({ address, signTransactions: () => Promise.resolve([]) });

/** TransferChecked between two wallets, with a memo. */
export function transferWithMemo({ from, to, mint, amount, memo }: Transfer): readonly Instruction[] {
  return [
    getTransferCheckedInstruction({
      source: tokenAccountAddress(from, mint),
      mint,
      destination: tokenAccountAddress(to, mint),
      authority: stubSigner(from),
      amount,
      decimals: DECIMALS,
    }),
    { programAddress: MEMO_PROGRAM, data: Buffer.from(memo, 'utf8') },
  ];
}

/** Compute units for a transfer and a memo that holds an account. */
const DRAFT_BUDGET = { units: 80_000n, price: 1n };
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
    compiledOf(extra['feePayer'] as Address, DRAFT_BUDGET, transferWithMemo(paid), lifetime),
  );
}

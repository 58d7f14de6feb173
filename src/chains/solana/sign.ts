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
} from '@solana/kit';
import bs58 from 'bs58';
import { COMPUTE_BUDGET_PROGRAM, type TreasuryKey } from './address.ts';

/** Compute units to find and create an associated account, for a transfer and a memo. */
const BUDGET: Budget = { units: 150_000n, price: 20_000n };

/** The highest cost in lamports of a transaction of the gateway, without the rent of the accounts that it creates. */
export const OWN_FEE_LAMPORTS = 5_000n + (BUDGET.units * BUDGET.price) / 1_000_000n;

interface Budget {
  readonly units: bigint;
  /** Micro-lamports per unit. */
  readonly price: bigint;
}

interface Lifetime {
  readonly blockhash: string;
  readonly lastValidBlockHeight: bigint;
}

/** Compiles a transaction of these instructions. It is not signed. */
export function compiledOf(
  feePayer: Address,
  { units, price }: Budget,
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

import {
  appendTransactionMessageInstructions,
  compileTransaction,
  createTransactionMessage,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Blockhash,
  type Instruction,
} from '@solana/kit';
import bs58 from 'bs58';
import { COMPUTE_BUDGET_PROGRAM, type TreasuryKey } from './address.ts';

/** Finding an associated account, creating it, a transfer and a memo. */
const COMPUTE_UNITS = 150_000n;
const MICRO_LAMPORTS_PER_UNIT = 20_000n;

/** The most lamports that one transaction of ours costs beside the rent of what it creates. */
export const OWN_FEE_LAMPORTS = 5_000n + (COMPUTE_UNITS * MICRO_LAMPORTS_PER_UNIT) / 1_000_000n;

/** Signs a transaction of the treasury's own: base64 to send, and its id. Nothing is sent. */
export function signOwn(
  key: TreasuryKey,
  instructions: readonly Instruction[],
  { blockhash, lastValidBlockHeight }: { readonly blockhash: string; readonly lastValidBlockHeight: bigint },
): { readonly base64: string; readonly id: string } {
  const { messageBytes } = pipe(
    createTransactionMessage({ version: 0 }),
    (message) => setTransactionMessageFeePayer(key.address, message),
    (message) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: blockhash as Blockhash, lastValidBlockHeight }, message),
    (message) =>
      appendTransactionMessageInstructions(
        [computeBudget(2, COMPUTE_UNITS, 4), computeBudget(3, MICRO_LAMPORTS_PER_UNIT, 8), ...instructions],
        message,
      ),
    compileTransaction,
  );
  const message = Uint8Array.from(messageBytes);
  const signature = key.sign(message);
  return {
    base64: Buffer.concat([Uint8Array.of(1), signature, message]).toString('base64'),
    id: bs58.encode(signature),
  };
}

/** SetComputeUnitLimit (2, u32) and SetComputeUnitPrice (3, u64). */
export function computeBudget(kind: number, value: bigint, bytes: number): Instruction {
  const data = Buffer.alloc(9);
  data[0] = kind;
  data.writeBigUInt64LE(value, 1);
  return { programAddress: COMPUTE_BUDGET_PROGRAM, data: Uint8Array.from(data.subarray(0, 1 + bytes)) };
}

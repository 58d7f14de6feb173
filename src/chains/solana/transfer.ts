import type { Address, Instruction } from '@solana/kit';
import { getTransferCheckedInstruction } from '@solana-program/token';
import { DECIMALS, MEMO_PROGRAM, tokenAccountAddress } from './address.ts';

interface Transfer {
  /** Wallets; their associated token accounts are meant. */
  readonly from: Address;
  readonly to: Address;
  readonly mint: Address;
  readonly amount: bigint;
  readonly memo: string;
}

/** Stands where a signer is asked for: the compiled message is signed, not its instructions. */
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

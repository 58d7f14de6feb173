import type { Address, Instruction } from '@solana/kit';
import { getTransferCheckedInstruction } from '@solana-program/token';
import { DECIMALS, MEMO_PROGRAM, tokenAccountAddress } from './address.ts';

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

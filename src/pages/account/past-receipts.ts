import type { Ledger, LockRecord, ReceiptSigner } from '#billing';
import { receiptOfRecord } from './receipts.ts';

/** Receipts (compact JWS) of calls that were settled in the past. null for a call that was not charged. */
interface PastReceipts {
  ofRecord(record: LockRecord): string | null;
  /** Returns null also for an unknown call. Rejects if the database can't be reached. */
  ofCall(callId: string): Promise<string | null>;
}

/** `networks` are the gateway's own chains. They name the network of wallets that signed in without one. */
export function createPastReceipts(
  signer: ReceiptSigner,
  ledger: Pick<Ledger, 'find'>,
  networks: readonly string[],
): PastReceipts {
  const ofRecord = (record: LockRecord) => {
    const receipt = receiptOfRecord(record, networks);
    return receipt === null ? null : signer.sign(receipt);
  };
  return {
    ofRecord,
    async ofCall(callId) {
      const record = await ledger.find(callId);
      return record === null ? null : ofRecord(record);
    },
  };
}

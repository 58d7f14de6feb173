import type { Ledger, LockRecord, ReceiptSigner } from '#billing';
import { receiptOfRecord } from './receipts.ts';

/** Receipts of calls that were settled before, compact JWS; null for a call that was not charged. */
interface PastReceipts {
  ofRecord(record: LockRecord): string | null;
  /** null also for a call that is not known. Rejects where the database cannot be reached. */
  ofCall(callId: string): Promise<string | null>;
}

/** `networks`: of the gateway's own chains, in which wallets are named that signed in on none. */
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

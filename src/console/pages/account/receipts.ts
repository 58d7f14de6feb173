import type { LockRecord, Receipt, Ledger, ReceiptSigner } from '#billing';
import { accountOfRecord } from './generation-view.ts';

/** Makes the receipt of a settled call from its record. Returns null if the call was not charged. */
export function receiptOfRecord(record: LockRecord, networks: readonly string[]): Receipt | null {
  const { id, provider, parent, price, amount, usage, charged, fee, resolvedAt } = record;
  if (record.state !== 'settled' || provider === null || price === null || resolvedAt === null) return null;
  const { primitive, tags } = JSON.parse(record.lockDetail) as Pick<Receipt, 'tags'> & { primitive: string };
  return {
    id,
    account: accountOfRecord(record, networks),
    provider,
    primitive,
    ...(parent === null ? {} : { parent }),
    tags,
    price,
    lock: amount,
    usage: usage ?? '{}',
    charged,
    fee,
    time: resolvedAt,
  };
}

/** Receipts (compact JWS) of calls that were settled in the past. null for a call that was not charged. */
export interface PastReceipts {
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

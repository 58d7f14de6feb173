import {
  usageToText,
  type EndFrame,
  type LockRecord,
  type Receipt,
  type Settlement,
  type Ledger,
  type ReceiptSigner,
} from '#billing';
import type { Call } from '#call';
import { callerCaip10 } from '#accounts/names';
import { accountOfRecord } from './generation-view.ts';

/**
 * Makes the receipt of a call that has just been settled. `time` is in epoch milliseconds, `networks` are the CAIP-2
 * ids of the gateway's own chains.
 */
export function receiptOfCall(
  call: Call,
  { provider, price, usage }: EndFrame,
  { charged, fee }: Settlement,
  time: number,
  networks: readonly string[],
): Receipt {
  const lock = call.candidates.reduce((most, { estimate }) => (estimate > most ? estimate : most), 0n);
  return {
    id: call.id,
    account: callerCaip10(call.caller, networks),
    provider,
    primitive: call.primitive,
    ...(call.parent === null ? {} : { parent: call.parent }),
    price,
    lock: lock + call.lendable,
    usage: usageToText(usage ?? {}),
    charged,
    fee,
    time,
  };
}

/** Makes the receipt of a settled call from its record. Returns null if the call was not charged. */
export function receiptOfRecord(record: LockRecord, networks: readonly string[]): Receipt | null {
  const { id, provider, parent, price, amount, usage, charged, fee, resolvedAt } = record;
  if (record.state !== 'settled' || provider === null || price === null || resolvedAt === null) return null;
  const { primitive } = JSON.parse(record.lockDetail) as { primitive: string };
  return {
    id,
    account: accountOfRecord(record, networks),
    provider,
    primitive,
    ...(parent === null ? {} : { parent }),
    price,
    lock: amount,
    usage: usage ?? '{}',
    charged,
    fee,
    time: resolvedAt,
  };
}

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

import { usageToText, type EndFrame, type LockRecord, type Receipt, type Settlement } from '#billing';
import type { Call } from '#gateway';
import { callerCaip10 } from '#auth/accounts';
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

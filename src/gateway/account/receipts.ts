import { usageToText, type EndFrame, type LockRecord, type Receipt, type Settlement } from '#billing';
import type { Call } from '../call.ts';

/** The receipt of a call that has just settled. `time` is epoch milliseconds. */
export function receiptOfCall(call: Call, { provider, price, usage }: EndFrame, { charged, fee }: Settlement, time: number): Receipt {
  const lock = call.candidates.reduce((most, { estimate }) => (estimate > most ? estimate : most), 0n);
  return {
    id: call.id,
    account: call.caller.account,
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

/** The receipt of a settled call from its record; null for one that was not charged. */
export function receiptOfRecord(record: LockRecord): Receipt | null {
  const { id, account, provider, parent, price, amount, usage, charged, fee, resolvedAt } = record;
  if (record.state !== 'settled' || provider === null || price === null || resolvedAt === null) return null;
  const { primitive } = JSON.parse(record.lockDetail) as { primitive: string };
  return {
    id,
    account,
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

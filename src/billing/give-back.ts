import type { Ledger, LockRecord } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';
import type { Refunds } from './refunds.ts';

interface LostCall {
  /** Given back now or before. */
  readonly amount: MicroUsd;
  /**
   * Until then (epoch ms) the call may still be charged, by a gateway that is only out of reach; null: it cannot be.
   */
  readonly openUntil: number | null;
}

/**
 * Gives back what a call was charged whose answer is lost, because its gateway ended between the charge and the row of
 * the answer. Whoever keeps an answer has a row with the id of its call before the call begins, and asks here when it
 * finds that row without an answer. Of a run, its calls are given back: the gateway itself made them for the answer.
 * The operator bears it, because the provider has done its work. It can be repeated. Rejects with LedgerUnavailable.
 */
export type GiveBack = (callId: string) => Promise<LostCall>;

interface GiveBackOptions {
  readonly ledger: Pick<Ledger, 'find' | 'children'>;
  readonly refunds: Pick<Refunds, 'refund'>;
  /** Tells the operator, once for each call. */
  readonly onGivenBack: (call: Pick<LockRecord, 'id' | 'account'>, amount: MicroUsd) => void;
}

const REASON = 'its answer was lost with its gateway';

export function createGiveBack({ ledger, refunds, onGivenBack }: GiveBackOptions): GiveBack {
  async function giveBack(record: LockRecord): Promise<MicroUsd> {
    if (record.state !== 'settled' || record.charged === 0n) return 0n;
    const refunded = await refunds.refund({ ...record, provider: null }, record.charged, REASON);
    if (refunded.ok && !refunded.duplicate) onGivenBack(record, refunded.refund.amount);
    return refunded.refund.amount;
  }
  return async (callId) => {
    const record = await ledger.find(callId);
    if (record === null) return { amount: 0n, openUntil: null };
    if (record.state === 'held') return { amount: 0n, openUntil: record.expiresAt };
    let amount = await giveBack(record);
    if ((JSON.parse(record.lockDetail) as { readonly run?: unknown }).run === true)
      for (const child of await ledger.children(callId)) amount += await giveBack(child);
    return { amount, openUntil: null };
  };
}

import { chargeOf, resolutionOf, type EndFrame } from './bill.ts';
import type { Ledger, LockRecord, Settlement } from './ledger.ts';
import type { MicroUsd } from './money.ts';
import type { PriceBook } from './price-book.ts';
import { usageToText } from './price.ts';

/** The end of the work of a pending call: what its EndFrame would have contained. */
type PendingCallEnd = Pick<EndFrame, 'price' | 'provider' | 'usage' | 'detail'> & {
  readonly outcome: 'complete' | 'cut' | 'free';
  /**
   * The estimate of the provider that did the work. The lock may be larger, because it was made for a dearer provider.
   * null takes the lock without its lendable part.
   */
  readonly most?: MicroUsd | null;
};

interface SettledPendingCall {
  readonly settlement: Settlement;
  /** The lock before this settlement. */
  readonly lock: LockRecord;
  /** True if the lock was resolved already. Then `settlement` is what was charged at that time. */
  readonly before: boolean;
}

interface SettlePendingCallOptions {
  readonly ledger: Pick<Ledger, 'find' | 'settle'>;
  readonly prices: Pick<PriceBook, 'find'>;
  readonly feeBps: number;
}

/**
 * Settles a pending call once, whichever gateway saw the end of its work. It charges by the price that the lock was
 * made with, at most the estimate. Resolves with null for a call without a lock. Rejects with LedgerUnavailable.
 */
export type SettlePendingCall = (id: string, conclusion: PendingCallEnd) => Promise<SettledPendingCall | null>;

export function createSettlePendingCall({ ledger, prices, feeBps }: SettlePendingCallOptions): SettlePendingCall {
  return async (id, { price: priceId, most = null, provider, usage, outcome, detail }) => {
    const lock = await ledger.find(id);
    if (!lock) return null;
    const { charged, fee, drawn, shortfall } = lock;
    if (lock.state !== 'held') return { lock, settlement: { charged, fee, drawn, shortfall }, before: true };
    const price = await prices.find(priceId);
    if (!price) throw new Error(`call ${id}: price version ${priceId} is not stored`);
    const own = lock.amount - lock.lendable;
    const charge = chargeOf({ price, estimate: most !== null && most < own ? most : own }, { outcome, usage }, true);
    const result = await ledger.settle({
      id,
      price: priceId,
      provider,
      charge,
      draw: false,
      feeBps,
      usage: usageToText(usage ?? {}),
      detail: JSON.stringify(detail),
    });
    return { lock, settlement: await resolutionOf(ledger, id, result), before: !result.ok };
  };
}

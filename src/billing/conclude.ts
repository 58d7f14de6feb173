import { chargeOf, resolutionOf, type EndFrame } from './bill.ts';
import type { Ledger, LockRecord, Settlement } from './ledger.ts';
import type { MicroUsd } from './money.ts';
import type { PriceBook } from './price-book.ts';
import { usageToText } from './price.ts';

/** How the work of a call ended that had been left pending: what its EndFrame would have said. */
type Conclusion = Pick<EndFrame, 'price' | 'provider' | 'usage' | 'detail'> & {
  readonly outcome: 'complete' | 'cut' | 'free';
  /**
   * The estimate of the provider that did the work, where the lock may be that of a dearer one; null for what is
   * locked.
   */
  readonly most?: MicroUsd | null;
};

interface Concluded {
  readonly settlement: Settlement;
  /** The lock as it was before. */
  readonly lock: LockRecord;
  /** Somebody else had ended it: `settlement` is what was charged then. */
  readonly before: boolean;
}

interface ConcludeOptions {
  readonly ledger: Pick<Ledger, 'find' | 'settle'>;
  readonly prices: Pick<PriceBook, 'find'>;
  readonly feeBps: number;
}

/**
 * Settles a call whose work outlived it, by whatever path its end was seen, on whatever gateway: at the price that
 * its lock was made with, no higher than its estimate, once. Resolves with null for a call that has no lock.
 * Rejects with LedgerUnavailable.
 */
export type Conclude = (id: string, conclusion: Conclusion) => Promise<Concluded | null>;

export function createConclude({ ledger, prices, feeBps }: ConcludeOptions): Conclude {
  return async (id, { price: priceId, most = null, provider, usage, outcome, detail }) => {
    const lock = await ledger.find(id);
    if (!lock) return null;
    const { charged, fee, drawn, shortfall } = lock;
    if (lock.state !== 'held') return { lock, settlement: { charged, fee, drawn, shortfall }, before: true };
    const price = await prices.find(priceId);
    if (!price) throw new Error(`call ${id} has price ${priceId}, which nobody remembers`);
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

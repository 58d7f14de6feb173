import type { EndFrame } from './frames.ts';
import type { Ledger, LockRecord, Settlement, SettleRequest, SettleResult } from './ledger/ledger.ts';
import type { MicroUsd } from './prices/money.ts';
import { cost, type Price, type ServiceTiers } from './prices/price.ts';
import { usageToText } from './prices/price-text.ts';
import type { PriceBook } from './prices/price-book.ts';

/** A price, and the most that a call can cost by it. */
export interface Quote {
  readonly price: Price;
  readonly estimate: MicroUsd;
  /** Prices of which one is charged instead if the call comes to less by it. Absent: only `price`. */
  readonly serviceTiers?: ServiceTiers | undefined;
  /** Present if the consumer's own key is used: the fee of the call, in basis points, in place of the usual one. */
  readonly ownKey?: { readonly feeBps: number };
}

export const NOTHING: Settlement = { charged: 0n, fee: 0n, drawn: 0n, shortfall: 0n };

type Charged = Pick<EndFrame, 'outcome' | 'usage' | 'costMax'>;

/** The settlement of a run that ended as `end`. It is at most the estimate of `quote`. */
export function settleOf(
  id: string,
  quote: Quote,
  end: Charged & Pick<EndFrame, 'provider'>,
  detail: string,
  feeBps: number,
  mayBeLate = false,
): SettleRequest {
  return {
    id,
    price: quote.price.id,
    provider: end.provider,
    charge: chargeOf(quote, end),
    draw: false,
    feeBps,
    usage: usageToText(end.usage ?? {}),
    detail,
    mayBeLate,
  };
}

export const settlementOf = ({ charged, fee, drawn, shortfall }: Settlement) => ({ charged, fee, drawn, shortfall });

/**
 * The cost of a run that ended: 0 for the outcome `free` or without usage, else the price of its usage, at most the
 * estimate. Usage of output past the cap arrives here measured, with a completion of at most the cap.
 */
function chargeOf(quote: Quote, end: Charged): MicroUsd {
  if (end.outcome === 'free' || !end.usage) return 0n;
  const full = cost(quote.price.rates, end.usage);
  const exact = (end.costMax ?? full) < full ? end.costMax! : full;
  return exact > quote.estimate ? quote.estimate : exact;
}

export interface CallResolution {
  readonly settlement: Settlement;
  /** Epoch ms; null if the call was not settled. */
  readonly settledAt: number | null;
}

/**
 * If another process resolved the lock first, the consumer gets no error. It pays what was settled then, and nothing if
 * the lock was released or expired. Throws for every other refusal.
 */
export function resolutionOf(
  ledger: Pick<Ledger, 'find'>,
  id: string,
  result: SettleResult,
): CallResolution | Promise<CallResolution> {
  if (result.ok) return { settlement: settlementOf(result), settledAt: result.resolvedAt };
  if (result.reason !== 'already_resolved') throw new Error(`call ${id} could not be settled: ${result.reason}`);
  return resolvedElsewhere(ledger, id);
}

async function resolvedElsewhere(ledger: Pick<Ledger, 'find'>, id: string): Promise<CallResolution> {
  const record = await ledger.find(id);
  return record?.state === 'settled'
    ? { settlement: settlementOf(record), settledAt: record.resolvedAt }
    : { settlement: NOTHING, settledAt: null };
}

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
    if (lock.state !== 'held') return { lock, settlement: settlementOf(lock), before: true };
    const price = await prices.find(priceId);
    if (!price) throw new Error(`call ${id}: price version ${priceId} is not stored`);
    const own = lock.amount - lock.lendable;
    const quote = { price, estimate: most !== null && most < own ? most : own };
    const result = await ledger.settle(
      settleOf(id, quote, { outcome, usage, provider }, JSON.stringify(detail), feeBps),
    );
    const { settlement } = await resolutionOf(ledger, id, result);
    return { lock, settlement, before: !result.ok };
  };
}

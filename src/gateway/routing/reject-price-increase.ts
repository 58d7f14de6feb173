import { GatewayError } from '#wire';
import { formatUsd, jumpedMeters, type Meter, ratesToUsd, rateOf, type Rates } from '#billing';
import type { Offer } from '../call.ts';
import type { CallRequest } from '../call-request.ts';
import type { RoutePreferences } from './preferences.ts';

/** The members of a call that matter for a raised price. */
type RaisedCall = Pick<CallRequest, 'price' | 'priceBefore' | 'capped' | 'budget' | 'preferences'>;

/**
 * Refuses a call at a price that rose sharply a short time ago, unless its consumer named the most that the call may
 * cost. So a consumer who read the old price does not pay the new one by surprise. `rates`: the current rates of the
 * call. Throws GatewayError `unprocessable`.
 */
export function rejectPriceIncrease(offer: Offer, call: RaisedCall, rates: Rates, now: () => number): void {
  const { raised } = offer;
  const { capped = typeof call.budget === 'bigint', preferences } = call;
  const { maxPrice } = preferences;
  if (raised === undefined || capped || raised.until <= now()) return;
  const { was } = raised;
  const before = ratesBefore({ ...offer, ...was }, call);
  const words: string[] = [];
  const meters = jumpedMeters(rates, before);
  if (meters.length > 0) {
    if (maxPrice === null || !meters.every((meter) => isBounded(maxPrice, meter)))
      for (const meter of meters)
        words.push(`${meter} from ${usdOf(before, meter)} to ${usdOf(rates, meter)} USD${UNITS[meter] ?? ''}`);
  }
  if (was.agent?.chargedPer === 'task' && offer.agent?.chargedPer === 'message')
    words.push('from a price per task to the same per message');
  const nested = [was.agent?.nestedMax ?? 0n, offer.agent?.nestedMax ?? 0n] as const;
  if (nested[1] > 2n * nested[0]) words.push(`nested_max from ${formatUsd(nested[0])} to ${formatUsd(nested[1])} USD`);
  if (offer.priceCap !== null && was.priceCap !== null && offer.priceCap > 2n * was.priceCap)
    words.push(`per_call_max from ${formatUsd(was.priceCap)} to ${formatUsd(offer.priceCap)} USD`);
  if (words.length === 0) return;
  throw new GatewayError(
    'unprocessable',
    `${offer.provider.name} raised the price of ${offer.service}: ${words.join(', ')}. Until ${new Date(raised.until).toISOString()} it is called only with max_cost (or the header x-max-cost): the most USD that the call may cost`,
    { param: 'max_cost' },
  );
}

/**
 * The rates of the same call at the offer's old prices. If the old prices do not fit the call, they are those of the
 * whole offer.
 */
function ratesBefore(old: Offer, { price, priceBefore = price }: RaisedCall): Rates {
  try {
    return priceBefore?.(old).rates ?? old.price.rates;
  } catch (error) {
    if (error instanceof GatewayError) return old.price.rates;
    throw error;
  }
}

const PER_TOKENS = ' per 1M tokens';
const UNITS: Readonly<Partial<Record<Meter, string>>> = {
  prompt: PER_TOKENS,
  completion: PER_TOKENS,
  input_cache_read: PER_TOKENS,
  input_cache_write: PER_TOKENS,
};

const usdOf = (rates: Rates, meter: Meter): number => ratesToUsd({ [meter]: rateOf(rates, meter) })[meter] ?? 0;

function isBounded(maxPrice: NonNullable<RoutePreferences['maxPrice']>, meter: Meter): boolean {
  const named = meter === 'input_cache_read' || meter === 'input_cache_write' ? 'prompt' : meter;
  return (named === 'prompt' || named === 'completion' || named === 'image') && maxPrice[named] !== undefined;
}

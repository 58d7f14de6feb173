import { GatewayError } from '#errors';
import { type JsonObject, foldName } from '#wire';
import {
  isPerMillion,
  type ReplyPiece,
  costAtMost,
  formatUsd,
  MoneyError,
  parseUsd,
  type MicroUsd,
  type Meter,
  ratesToUsd,
  type Rates,
  TOKEN_PARTS,
} from '#billing/amounts';
import { jumpsBetween } from '#billing';
import type { Offer } from '#catalog';
import type { CallRequest, CostCap } from './call.ts';
import type { RoutePreferences } from './preferences.ts';

/** The header for a cap, at every route. */
export const MAX_COST_HEADER = 'x-max-cost';

/** The member for a cap in the metadata of a wire. */
export const MAX_COST_META = 'tollgate/max_cost';

/**
 * The lowest of the caps that a request names. `entries`: names with amounts of USD as the client sent them; undefined
 * and null are skipped. null if no cap is named. Throws GatewayError `invalid_request` for a value that is not an
 * amount.
 */
export function lowestCap(entries: Iterable<readonly [name: string, said: unknown]>): CostCap | null {
  let lowest: CostCap | null = null;
  for (const [name, value] of entries) {
    if (value === undefined || value === null) continue;
    const amount = amountOf(value, name);
    if (lowest === null || amount < lowest.amount) lowest = { amount, name };
  }
  return lowest;
}

/**
 * Refuses a parameter like `max_cost` beside the metadata of a wire. The chat API calls its cap that, but here the
 * parameter would have no effect. `metadata`: the name of the member that holds the metadata. Throws GatewayError
 * `invalid_request`.
 */
export function refuseCapBeside(params: JsonObject, metadata: string): void {
  const name = Object.keys(params).find((key) => foldName(key, BESIDE.length) === BESIDE);
  if (name === undefined) return;
  const right = `${metadata}["${MAX_COST_META}"]`;
  throw new GatewayError(
    'invalid_request',
    `${JSON.stringify(name)} has no effect here: give the cap in ${right}, or in the header ${MAX_COST_HEADER}`,
    {
      param: right,
    },
  );
}

const BESIDE = 'maxcost';

function amountOf(value: unknown, name: string): MicroUsd {
  try {
    return parseUsd(value, name);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new GatewayError('invalid_request', error.message, { param: name, cause: error });
  }
}

/**
 * The request with its cap applied: offers with a higher estimate do not serve it. For an agent the rest of the cap is
 * the budget for the calls that it makes. With null the request is unchanged.
 */
export function capCost<R, D extends ReplyPiece>(request: CallRequest<R, D>, cap: CostCap | null): CallRequest<R, D> {
  if (cap === null) return request;
  const { amount: maxCost, name } = cap;
  const capped: CallRequest<R, D> = {
    ...request,
    capped: true,
    cap: { ...cap, cappedRequest: request },
    estimate(offer) {
      const most = request.estimate(offer);
      const { rates } = request.price?.(offer) ?? offer.price;
      const amount = 'costMax' in most ? most.costMax : costAtMost(rates, most);
      if (amount <= maxCost) return most;
      throw new GatewayError(
        'unprocessable',
        `${name} is ${formatUsd(maxCost)} USD, but ${offer.service} may cost ${formatUsd(amount)} USD`,
        {
          param: name,
        },
      );
    },
  };
  return request.primitive === 'agent' ? { ...capped, budget: maxCost } : capped;
}

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
  const jumps = jumpsBetween(rates, before);
  if (maxPrice === null || !jumps.every(({ meter }) => isBounded(maxPrice, meter)))
    for (const { meter, above, from, to } of jumps) {
      const unit = isPerMillion(meter) ? ` per 1M ${meter === 'character' ? 'characters' : 'tokens'}` : '';
      const long = above === 0n ? '' : ` for prompts of more than ${above} tokens`;
      words.push(`${meter} from ${usdOf(from, meter)} to ${usdOf(to, meter)} USD${unit}${long}`);
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

const usdOf = (rate: MicroUsd, meter: Meter): number => ratesToUsd({ [meter]: rate })[meter] ?? 0;

function isBounded(maxPrice: NonNullable<RoutePreferences['maxPrice']>, meter: Meter): boolean {
  const whole = (['prompt', 'completion'] as const).find((one) => TOKEN_PARTS[one].includes(meter));
  const meterName = whole ?? meter;
  return (
    (meterName === 'prompt' || meterName === 'completion' || meterName === 'image') && maxPrice[meterName] !== undefined
  );
}

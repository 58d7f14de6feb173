import { createHash } from 'node:crypto';
import { isPart, METERS, rateOf, TOKEN_PARTS, type Meter, type MeterRates } from './meters.ts';
import type { MicroUsd } from './money.ts';

/** The rates of a price. `tiers`: other rates for requests with long prompts, by rising `above`. */
export interface Rates extends MeterRates {
  readonly tiers?: readonly PriceTier[];
}

/** The rates of a whole request whose prompt has more than `above` tokens, those of a cache included. */
export interface PriceTier {
  readonly above: bigint;
  /** Complete: a rate that the tier did not name is that of the tier before it. */
  readonly rates: MeterRates;
}

/** Units used, each a non-negative integer. An absent meter counts as 0. No token is counted at two meters. */
export type Usage = Readonly<Partial<Record<Meter, bigint>>>;

/**
 * The most that a call can use. `prompt` and `completion` are all tokens. A part of them that is named is at most so
 * many of these tokens; one that is not named may be all of them.
 */
type UsageAtMost = Usage;

/** One immutable price of one provider for one service. A change of rates is a new version with a new id. */
export interface Price {
  readonly id: string;
  readonly rates: Rates;
}

const UNITS = 1_000_000n;
const NO_TIERS: readonly PriceTier[] = [];

/** All tokens of the prompt, including those of a cache and of sound. */
export const promptTokens = (usage: Usage): bigint => tokensOf(usage, 'prompt');

/** All tokens of the completion, including those of reasoning, sound and pictures. */
export const completionTokens = (usage: Usage): bigint => tokensOf(usage, 'completion');

function tokensOf(usage: Usage, whole: 'prompt' | 'completion'): bigint {
  let tokens = usage[whole] ?? 0n;
  for (const part of TOKEN_PARTS[whole]) {
    const units = usage[part];
    if (units) tokens += units;
  }
  return tokens;
}

/** The rates for a request whose prompt has so many tokens. */
export function ratesAt(rates: Rates, tokens: bigint): MeterRates {
  let at: MeterRates = rates;
  for (const tier of rates.tiers ?? NO_TIERS) if (tokens > tier.above) at = tier.rates;
  return at;
}

/** The tiers of a price, the first with `above` 0. */
const tiersOf = (rates: Rates): readonly PriceTier[] => [{ above: 0n, rates }, ...(rates.tiers ?? NO_TIERS)];

/**
 * The cost of `usage` at `rates`: computed exactly over all meters, then rounded up to one micro-USD, once.
 * A non-zero rate with non-zero usage therefore never costs 0.
 */
export function cost(rates: Rates, usage: Usage): MicroUsd {
  const at = rates.tiers === undefined ? rates : ratesAt(rates, promptTokens(usage));
  let sum = 0n;
  for (const meter of METERS) {
    const units = usage[meter];
    if (units) sum += rateOf(at, meter) * units;
  }
  return roundedUp(sum);
}

/** One product of a cost: `units` at `rate` micro-USD per 1,000,000 units. */
export interface CostLine {
  readonly meter: Meter;
  readonly units: bigint;
  readonly rate: MicroUsd;
}

/** The products that `cost` sums up and rounds, without those that are 0. */
export function costLines(rates: Rates, usage: Usage): readonly CostLine[] {
  const at = ratesAt(rates, promptTokens(usage));
  return METERS.flatMap((meter) => {
    const [units = 0n, rate] = [usage[meter], rateOf(at, meter)];
    return units > 0n && rate > 0n ? [{ meter, units, rate }] : [];
  });
}

/** The part of a cost that is for the prompt, for figures: micro-USD, not rounded. */
export function promptCost(rates: Rates, usage: Usage): number {
  const at = rates.tiers === undefined ? rates : ratesAt(rates, promptTokens(usage));
  let sum = (usage.prompt ?? 0n) * rateOf(at, 'prompt');
  for (const part of TOKEN_PARTS.prompt) sum += (usage[part] ?? 0n) * rateOf(at, part);
  return Number(sum) / Number(UNITS);
}

const roundedUp = (sum: bigint): MicroUsd => (sum + UNITS - 1n) / UNITS;

/**
 * The most that a call can cost that uses `most`, whichever tier its prompt is in, and whichever parts its tokens turn
 * out to be.
 */
export function costAtMost(rates: Rates, most: UsageAtMost): MicroUsd {
  if (rates.tiers === undefined) return roundedUp(sumAtMost(rates, most));
  const { prompt = 0n } = most;
  const tiers = tiersOf(rates);
  let dearest = 0n;
  tiers.forEach(({ above, rates: at }, index) => {
    if (index > 0 && prompt <= above) return;
    const end = tiers[index + 1]?.above ?? prompt;
    const sum = sumAtMost(at, { ...most, prompt: end < prompt ? end : prompt });
    if (sum > dearest) dearest = sum;
  });
  return roundedUp(dearest);
}

function sumAtMost(rates: MeterRates, most: UsageAtMost): bigint {
  let sum = tokensAtMost(rates, most, 'prompt') + tokensAtMost(rates, most, 'completion');
  for (const meter of METERS) {
    const units = most[meter];
    if (units && meter !== 'prompt' && meter !== 'completion' && !isPart(meter)) sum += rateOf(rates, meter) * units;
  }
  return sum;
}

/** The dearest parts first, each as far as it is possible. */
function tokensAtMost(rates: MeterRates, most: UsageAtMost, whole: 'prompt' | 'completion'): bigint {
  let remaining = most[whole] ?? 0n;
  const rate = rateOf(rates, whole);
  const dearer = TOKEN_PARTS[whole].filter((part) => rateOf(rates, part) > rate);
  if (dearer.length > 1) dearer.sort((a, b) => (rateOf(rates, a) > rateOf(rates, b) ? -1 : 1));
  let sum = 0n;
  for (const part of dearer) {
    const bound = most[part] ?? remaining;
    const tokens = bound < remaining ? bound : remaining;
    sum += rateOf(rates, part) * tokens;
    remaining -= tokens;
  }
  return sum + rate * remaining;
}

/** The highest rate of a text token of the prompt in the first tier, in micro-USD per 1M tokens. */
export function maxPromptRate(rates: Rates): MicroUsd {
  let dearest = rateOf(rates, 'prompt');
  for (const meter of ['input_cache_read', 'input_cache_write'] as const)
    if (rateOf(rates, meter) > dearest) dearest = rateOf(rates, meter);
  return dearest;
}

/** The highest rate of a meter in the tiers that a prompt of at most so many tokens can be in. */
export function maxRateOf(rates: Rates, meter: Meter, prompt: bigint): MicroUsd {
  let dearest = rateOf(rates, meter);
  for (const { above, rates: at } of rates.tiers ?? NO_TIERS)
    if (prompt > above && rateOf(at, meter) > dearest) dearest = rateOf(at, meter);
  return dearest;
}

/** Meters that count the same in every call: all that decides the cost of a token is its rate. */
const SAME_FOR_ALL: ReadonlySet<Meter> = new Set<Meter>([
  'prompt',
  'completion',
  'image',
  'second',
  'call',
  'input_image',
  'input_cache_read',
  'input_cache_write',
]);

/**
 * Whether the cost of a call does not follow from the rates of prompt and completion alone: long prompts, or other
 * parts of the tokens, have their own prices.
 */
export function variesByCall(rates: Rates): boolean {
  if (rates.tiers !== undefined) return true;
  for (const meter of pricedMeters(rates)) if (!SAME_FOR_ALL.has(meter)) return true;
  return false;
}

const priced = new WeakMap<Rates, ReadonlySet<Meter>>();

/** The meters that have a rate of their own in any tier. */
export function pricedMeters(rates: Rates): ReadonlySet<Meter> {
  let meters = priced.get(rates);
  if (meters === undefined) {
    const tiers = tiersOf(rates);
    meters = new Set(METERS.filter((meter) => tiers.some(({ rates: at }) => at[meter] !== undefined)));
    priced.set(rates, meters);
  }
  return meters;
}

export function isPriced(rates: Rates): boolean {
  return tiersOf(rates).some(({ rates: at }) => METERS.some((meter) => (at[meter] ?? 0n) > 0n));
}

/** The prices of an offer by the name of the service tier. `default` is the price of a call that names no tier. */
export type ServiceTiers = Readonly<Record<string, Price>>;

/** The tier of a call that names none. */
export const DEFAULT_TIER = 'default';
/** The service tier of the lines of batches that a provider gets as a batch. No other request can ask for it. */
export const BATCH_TIER = 'batch';

/**
 * The price that is charged: that of the asked service tier, or that of the tier that the reply claims if it comes to
 * less. A reply that claims no tier, or one without a price, counts as served in the default tier.
 */
export function settledPrice(
  pinned: Price,
  tiers: ServiceTiers | undefined,
  claimed: string | null | undefined,
  usage: Usage | null,
): Price {
  if (tiers === undefined || usage === null) return pinned;
  const name = claimed !== null && claimed !== undefined && Object.hasOwn(tiers, claimed) ? claimed : DEFAULT_TIER;
  const proven = tiers[name] ?? pinned;
  return cost(proven.rates, usage) < cost(pinned.rates, usage) ? proven : pinned;
}

/** Meters of the first release. Prices without a later meter keep the ids that they have had since then. */
const FIRST_METERS = 5;

/** The rates that distinguish a price. A part of the tokens that is free differs from one that costs what they do. */
const laterRates = (rates: MeterRates, meters: readonly Meter[]): readonly (readonly [Meter, string])[] =>
  meters.flatMap((meter) => {
    const rate = rates[meter];
    return rate || (rate !== undefined && isPart(meter)) ? [[meter, rate.toString()] as const] : [];
  });

/**
 * The id of a price version: a digest of provider, service and rates, so every gateway derives the same id. A price
 * without tiers and later meters has the id that it had before there were any.
 */
export function priceId(provider: string, service: string, rates: Rates): string {
  const first = METERS.slice(0, FIRST_METERS).map((meter) => (rates[meter] ?? 0n).toString());
  const later = laterRates(rates, METERS.slice(FIRST_METERS));
  const tiers = (rates.tiers ?? NO_TIERS).map(({ above, rates: at }) => [`>${above}`, ...laterRates(at, METERS)]);
  const canonical = JSON.stringify([provider, service, first, ...later, ...tiers]);
  return `price-${createHash('sha256').update(canonical).digest('hex').slice(0, 32)}`;
}

interface OfferParts {
  readonly primitive: string;
  /** Public key of the provider. */
  readonly provider: string;
  readonly service: string;
}

/** The id of an offer: a service of one provider. Tables and routing use this id. */
export const offerId = ({ primitive, provider, service }: OfferParts): string => `${primitive}/${provider}:${service}`;

const OFFER = /^([a-z]+)\/([^:]*):(.*)$/s;

/** The parts of an offer's id; empty texts if the text is no such id. */
export function partsOfOffer(id: string): OfferParts {
  const [, primitive = '', provider = '', service = ''] = OFFER.exec(id) ?? [];
  return { primitive, provider, service };
}

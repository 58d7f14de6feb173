import { maxPromptRate, type MicroUsd, type Meter, type Price, rateOf } from '#billing/amounts';
import type { Offer, Health, HealthState } from '#catalog';
import { createCachedPrefixes, createLastServed, type PromptPrefix, savedByCache } from '../affinity.ts';
import { declares } from '../declared.ts';
import type { RoutePreferences } from '../preferences.ts';
import type { Call } from '../call.ts';
import { withFewTrials } from './attempt-plan.ts';

export interface Router {
  /**
   * Orders offers for attempts: at most `attemptsMax`, the best first. Empty if no offer is acceptable and healthy.
   */
  choose(
    offers: readonly Offer[],
    preferences: RoutePreferences,
    stickyKey: string | null,
    call?: RoutedCall,
  ): readonly Offer[];
  served(stickyKey: string, offer: Offer): void;
  /** Remembers which offer served a prefix. `isCached`: its reply names tokens of the prompt in its cache. */
  servedPrefix(prefix: PromptPrefix, offer: Offer, isCached: boolean): void;
}

interface RouterOptions {
  readonly health: Health;
  /** A number from 0 to 1, excluding 1. */
  readonly random: () => number;
  readonly attemptsMax: number;
  /**
   * The maximum price of a call, as a multiple of the usual price, if its consumer names neither a provider nor a
   * price. Default: no limit.
   */
  readonly priceSpreadMax?: number;
  readonly now?: () => number;
  /** How long a sticky key prefers its provider after the last call that it served. */
  readonly stickyTtlMs?: number;
  readonly stickyMax?: number;
  /** How long a prefix prefers the offer that has it in its cache. Vendors keep it 5 to 60 minutes after a call. */
  readonly prefixTtlMs?: number;
}

/** Offers below this price in micro-USD per 1M, including free ones, have the same weight. So a weight stays finite. */
const PRICE_FLOOR = 1_000;
/** The number of tokens that a call with images is assumed to have. */
const TOKENS_PER_CALL = 1_000;
const COMPLIANCE_FLOOR = 0.05;
/** Rates are per this many units. */
const UNITS = 1_000_000;

/** The weight of an offer: micro-USD for 1M of its unit of price. */
type Weigh = (offer: Offer) => number;

interface RoutedCall {
  /** The number of images in the prompt, which count in the price for the weighing. Default 0. */
  readonly images?: number;
  /** The most that this call costs at an offer. It replaces the price. */
  readonly costOf?: ((offer: Offer) => MicroUsd) | undefined;
  /** The price that `maxPrice` is compared with. Default: the usual price of the offer. */
  readonly boundPriceOf?: ((offer: Offer) => Price) | undefined;
  /** The caller's. Some offers may rest for this account alone. */
  readonly account?: string;
  /** Healthy offers for which it is true come before all others except those in `order`. */
  readonly prefers?: ((offer: Offer) => boolean) | undefined;
  /** The beginning of its prompt, which an offer may have in its cache; null or absent for none. */
  readonly prefix?: PromptPrefix | null;
}

/** An offer that may be chosen. Entries are compared by `tier`, then `key`, then `draw`. The lowest is tried first. */
interface RankedOffer {
  readonly offer: Offer;
  readonly healthState: HealthState;
  readonly tier: number;
  readonly key: number;
  readonly draw: number;
}

const NOTHING_MORE: RoutedCall = {};

const ORDERED = -4;
const STICKY = -1;
/** Added to the tier of an offer that can do more of the request than others. */
const PREFERRED = -2;
/** The tier of an offer that is not proven: behind proven ones that have just failed, before those that rest. */
const UNPROVEN = 1.5;
/** The same for one that has TRIALS_AT_ONCE calls already. */
const ON_TRIAL = 1.75;
const TRIALS_AT_ONCE = 4;
/** The share of calls in which one of the offers that are not proven, however many, has the chance of a proven one. */
const TRIAL_SHARE = 0.05;
const TIERS: Readonly<Record<HealthState, number>> = { good: 0, probe: 0, recent: 1, resting: 2, open: 3 };

/**
 * Chooses at random among healthy offers, with the weight compliance² / price². Offers without a failure in the last 30
 * s come before the others. The consumer's preferences come first: `order`, then the offer that served the sticky key,
 * then `sort`. Without these, the offer comes first that has the beginning of the prompt in its cache, if no other is
 * cheaper even so. Strangers set their own prices. So unless the consumer asks for it, no call goes to an offer that
 * costs more than `priceSpreadMax` times the operator's own price, and no call falls back to an offer that costs so
 * much more than the first choice. Whatever its price, a stranger's offer that is not proven comes after those that
 * are, but for some calls in which it may prove itself, and it gets few calls at a time. Offers that rest after a
 * failure come last, unless they are `open` after too many failures in a row: then they are left out.
 */
export function createRouter(options: RouterOptions): Router {
  const {
    health,
    random,
    attemptsMax,
    priceSpreadMax = Infinity,
    now = Date.now,
    stickyTtlMs = 30 * 60_000,
    stickyMax = 20_000,
    prefixTtlMs = 10 * 60_000,
  } = options;
  const sessions = createLastServed({ now, ttlMs: stickyTtlMs, max: stickyMax });
  const prefixes = createCachedPrefixes({ now, ttlMs: prefixTtlMs, max: stickyMax });

  /**
   * The offer that has the beginning of the prompt in its cache, unless the consumer sorts, the offer has just failed,
   * or the call costs more there than at another offer that may serve it as well.
   */
  const cachingOffer = (
    offers: readonly Offer[],
    { sort }: RoutePreferences,
    { prefix, account, costOf }: RoutedCall,
    weigh: Weigh,
  ): string | null => {
    if (!prefix || sort !== null) return null;
    const id = prefixes.find(prefix, offers[0]!.service);
    const caching = id === null ? undefined : offers.find((offer) => offer.id === id);
    if (caching === undefined || health.healthState(caching, account) !== 'good') return null;
    const price = weigh(caching) - (costOf === undefined ? savedByCache(caching, prefix.share) : 0);
    const isCheaper = (other: Offer) =>
      other !== caching &&
      weigh(other) < price &&
      price > PRICE_FLOOR &&
      TIERS[health.healthState(other, account)] === TIERS.good;
    return offers.some(isCheaper) ? null : id;
  };

  const isOnTrial = (offer: Offer): boolean => health.trials(offer) >= TRIALS_AT_ONCE;

  /** The offer that may prove itself in this call; null for most calls. */
  const chooseTrial = (offers: readonly Offer[]): Offer | null => {
    if (random() >= TRIAL_SHARE) return null;
    const unproven = offers.filter((offer) => !health.isProven(offer) && !isOnTrial(offer));
    const drawn = unproven[Math.floor(random() * unproven.length)];
    return drawn && random() < 1 / (1 + health.stats(drawn).lastHour.failures) ? drawn : null;
  };

  const enter = (
    offers: readonly Offer[],
    preferences: RoutePreferences,
    preferred: string | null,
    weigh: Weigh,
    { account, prefers }: RoutedCall,
  ): RankedOffer[] => {
    const entries: RankedOffer[] = [];
    let trial: Offer | null | undefined;
    const tierOnTrial = (offer: Offer, tier: number): number => {
      if (preferences.sort !== null || tier >= UNPROVEN || health.isProven(offer)) return tier;
      if (trial === undefined) trial = chooseTrial(offers);
      return offer === trial ? tier : isOnTrial(offer) ? ON_TRIAL : UNPROVEN;
    };
    for (const offer of offers) {
      const healthState = health.healthState(offer, account);
      if (healthState === 'open') continue;
      const place = preferences.order.findIndex((providerName) => isProvider(offer, providerName));
      const first = healthState !== 'resting';
      const ordered = first && place !== -1;
      entries.push({
        offer,
        healthState,
        tier: ordered
          ? ORDERED
          : tierOnTrial(offer, tierOf(healthState, offer.id === preferred, prefers?.(offer) ?? false)),
        key: ordered ? place : sortKey(offer, preferences.sort, health, weigh),
        draw: drawOf(weigh(offer), random(), health.compliance(offer)),
      });
    }
    return entries.sort((a, b) => a.tier - b.tier || a.key - b.key || a.draw - b.draw);
  };

  /** Leaves out offers that cost many times the operator's price, if the operator itself serves the model. */
  const atUsualPrice = (offers: readonly Offer[], preferences: RoutePreferences, weigh: Weigh): readonly Offer[] => {
    let dearest = -1;
    for (const offer of offers) if (offer.endpoint.kind === 'direct') dearest = Math.max(dearest, weigh(offer));
    if (dearest < 0) return offers;
    const most = priceSpreadMax * Math.max(PRICE_FLOOR, dearest);
    return offers.every((offer) => weigh(offer) <= most)
      ? offers
      : offers.filter((offer) => isFair(offer, most, preferences, weigh));
  };

  return {
    choose(offers, preferences, stickyKey, call = NOTHING_MORE) {
      const { images = 0, costOf, boundPriceOf = usualPrice, account } = call;
      const [only] = offers;
      if (only && offers.length === 1) {
        if (!accepts(preferences, only, boundPriceOf)) return [];
        const healthState = health.healthState(only, account);
        if (healthState === 'probe') health.probing(only, account);
        return healthState === 'open' ? [] : offers;
      }
      const weigh: Weigh =
        costOf === undefined ? (offer) => priceOf(offer, images) : (offer) => Number(costOf(offer)) * UNITS;
      const accepted = atUsualPrice(narrow(offers, preferences, boundPriceOf), preferences, weigh);
      const [first] = accepted;
      if (!first) return [];
      const preferred =
        (stickyKey === null ? null : sessions.find(stickyKey, first.service)) ??
        cachingOffer(accepted, preferences, call, weigh);
      const entries = enter(accepted, preferences, preferred, weigh, call);
      const [best, ...others] = entries;
      if (!best) return [];
      if (best.healthState === 'probe') health.probing(best.offer, account);
      if (!preferences.allowFallbacks) return [best.offer];
      const chosen = [best.offer];
      // An offer in `probe` comes after all healthy ones, whatever its price. Those that rest are the last resort.
      const most = priceSpreadMax * Math.max(PRICE_FLOOR, weigh(best.offer));
      const affordable = others.filter(({ offer }) => isFair(offer, most, preferences, weigh));
      const ranked = (isTurn: (state: HealthState) => boolean) =>
        affordable.filter(({ healthState }) => isTurn(healthState));
      const healthy = ranked((state) => state !== 'probe' && state !== 'resting');
      for (const { offer } of [
        ...healthy,
        ...ranked((state) => state === 'probe'),
        ...ranked((state) => state === 'resting'),
      ])
        chosen.push(offer);
      return withFewTrials(chosen, health.isProven).slice(0, attemptsMax);
    },
    served: sessions.served,
    servedPrefix: prefixes.served,
  };
}

function tierOf(healthState: HealthState, isSticky: boolean, isPreferred: boolean): number {
  const tier = isSticky && healthState !== 'resting' ? STICKY : TIERS[healthState];
  return isPreferred && (tier === STICKY || healthState === 'good') ? PREFERRED + tier : tier;
}

const usualPrice = ({ price }: Offer): Price => price;

/** The offers that the preferences accept, whatever their health. */
function narrow(
  offers: readonly Offer[],
  preferences: RoutePreferences,
  boundPriceOf: (offer: Offer) => Price,
): readonly Offer[] {
  const { order, only, ignore, maxPrice, declared, allowFallbacks } = preferences;
  const accepted =
    only.length === 0 && ignore.length === 0 && maxPrice === null && declared === null
      ? offers
      : offers.filter((offer) => accepts(preferences, offer, boundPriceOf));
  if (allowFallbacks || order.length === 0) return accepted;
  // Without fallbacks only one provider may serve: the first in `order` that has an accepted offer.
  const firstProvider = order.find((one) => accepted.some((offer) => isProvider(offer, one)));
  return firstProvider === undefined ? [] : accepted.filter((offer) => isProvider(offer, firstProvider));
}

function accepts(preferences: RoutePreferences, offer: Offer, boundPriceOf: (offer: Offer) => Price): boolean {
  const { order, only, ignore, maxPrice, declared, allowFallbacks } = preferences;
  const isThis = (providerName: string) => isProvider(offer, providerName);
  if (only.length > 0 && !only.some(isThis)) return false;
  if (ignore.some(isThis)) return false;
  if (!allowFallbacks && order.length > 0 && !order.some(isThis)) return false;
  if (declared !== null && !declares(offer, declared)) return false;
  if (maxPrice === null) return true;
  const { rates } = boundPriceOf(offer);
  const within = (meter: Meter, limit: bigint | undefined) => limit === undefined || rateOf(rates, meter) <= limit;
  return (
    within('prompt', maxPrice.prompt) &&
    within('input_cache_read', maxPrice.prompt) &&
    within('input_cache_write', maxPrice.prompt) &&
    within('completion', maxPrice.completion) &&
    // The price of a generated image depends on tier and quality. It is compared elsewhere, where these are known.
    (offer.primitive === 'image' || within('image', maxPrice.image))
  );
}

/**
 * Whether the price of an offer is acceptable: it is the operator's own offer, its price is within the limit, or the
 * consumer named its provider or a maximum price.
 */
function isFair(offer: Offer, most: number, { order, only, maxPrice }: RoutePreferences, weigh: Weigh): boolean {
  if (offer.endpoint.kind === 'direct' || weigh(offer) <= most || maxPrice !== null) return true;
  return [...order, ...only].some((providerName) => isProvider(offer, providerName));
}

/**
 * Ids are public keys. Base58 is compared exactly, hex without regard to case. Names are compared without regard to
 * case.
 */
function isProvider({ provider: { id, name } }: Offer, providerName: string): boolean {
  if (id === providerName || (name.length === providerName.length && name.toLowerCase() === providerName.toLowerCase()))
    return true;
  return id.startsWith('0x') && id === providerName.toLowerCase();
}

function sortKey(offer: Offer, sort: RoutePreferences['sort'], health: Health, weigh: Weigh): number {
  switch (sort) {
    case null:
      return 0;
    case 'price':
      return weigh(offer);
    case 'latency':
      return health.latencyMs(offer) ?? Number.MAX_VALUE;
    case 'throughput':
      return -(health.tokensPerSecond(offer) ?? 0);
  }
}

/**
 * A random number for an offer. The offer with the lowest number is chosen, so each is chosen with a probability in
 * proportion to its weight: the number is an exponential variate divided by the weight.
 */
function drawOf(blended: number, random: number, compliance: number): number {
  const price = Math.max(PRICE_FLOOR, blended);
  const trust = Math.max(COMPLIANCE_FLOOR, compliance);
  return (-Math.log(1 - random) * price * price) / (trust * trust);
}

/**
 * The price of an offer for a call with this many images, because an offer with cheap tokens may have expensive images.
 */
function priceOf(offer: Offer, images: number): number {
  const blended = blendedPrice(offer);
  return images === 0 || offer.primitive !== 'model'
    ? blended
    : blended + (Number(offer.price.rates.image ?? 0n) * images) / TOKENS_PER_CALL;
}

const prices = new WeakMap<Offer, number>();

/**
 * Micro-USD per 1M, prompt and completion together. An offer without a price per token counts with the most expensive
 * part of its price, because a client that opens a session or lists tools has not said yet what it will call.
 */
function blendedPrice(offer: Offer): number {
  let price = prices.get(offer);
  if (price === undefined) {
    price =
      offer.primitive === 'model'
        ? tokenPrice(offer.price)
        : Math.max(...[offer.price, ...Object.values(offer.variants)].map(ratesTogether));
    if (offer.priceCap !== null) price = Math.max(price, Number(offer.priceCap) * UNITS);
    // The amount that an agent may spend on its own calls counts in full.
    price += Number(offer.agent?.nestedMax ?? 0n) * UNITS;
    prices.set(offer, price);
  }
  return price;
}

const tokenPrice = ({ rates }: Price): number => Number(maxPromptRate(rates) + rateOf(rates, 'completion'));

const ratesTogether = ({
  rates: { prompt = 0n, completion = 0n, image = 0n, second = 0n, call = 0n },
}: Price): number => Number(prompt + completion + image + second + call);

/**
 * To be called for a prepared call that will not be sent. Other calls may then probe its offers that have cooled down.
 */
export function releaseProbes(health: Health, { candidates, caller }: Call): void {
  for (const { offer } of candidates) health.notProbed(offer, caller.account);
}

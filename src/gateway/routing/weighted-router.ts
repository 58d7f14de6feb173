import { dropOldest } from '#wire';
import { dearestPrompt, type Meter, type Price, rateOf } from '#billing';
import type { Offer } from '../call.ts';
import type { RoutePreferences } from './preferences.ts';
import type { Health, Router, Standing } from './router.ts';

interface RouterOptions {
  readonly health: Health;
  /** 0 to 1, without 1. */
  readonly random: () => number;
  readonly attemptsMax: number;
  /**
   * How many times the usual price a call may cost that names no provider and no price of its own; default without
   * bound.
   */
  readonly priceSpreadMax?: number;
  readonly now?: () => number;
  /** How long a sticky key prefers its provider after it was last served. */
  readonly stickyTtlMs?: number;
  readonly stickyMax?: number;
}

/** Offers below this many micro-USD per 1M, free ones among them, weigh the same: a weight stays finite. */
const PRICE_FLOOR = 1_000;
/** Tokens of the call that images are weighed beside. */
const TOKENS_PER_CALL = 1_000;
const COMPLIANCE_FLOOR = 0.05;
/** Rates are for so many units. */
const UNITS = 1_000_000;

/** The weight of an offer: micro-USD for 1M of its unit of price. */
type Weigh = (offer: Offer) => number;

/** An offer in the running. It is compared by `tier`, then `key`, then `draw`; the lowest is tried first. */
interface Entry {
  readonly offer: Offer;
  readonly standing: Standing;
  readonly tier: number;
  readonly key: number;
  readonly draw: number;
}

const ORDERED = -4;
const STICKY = -1;
/** Added to the tier of an offer that can do more of the call than others. */
const PREFERRED = -2;
const TIERS: Readonly<Record<Standing, number>> = { good: 0, probe: 0, recent: 1, resting: 2, open: 3 };

/**
 * Chooses by weight 1/price² among healthy offers; those without a failure in the last 30 s come before those with
 * one. The consumer's wishes come first: `order`, then the offer that served the sticky key, then `sort`. Strangers
 * set their own prices: unless the consumer asks for it, no call goes to an offer that is `priceSpreadMax` times as
 * dear as the operator's own, nor falls back to one so much dearer than the first choice. Offers that rest after a
 * failure are left out while there are others. When there are no others they are tried, unless they are `open`
 * after too many failures in a row.
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
  } = options;
  const sticky = new Map<string, { readonly offer: string; readonly until: number }>();

  const stickyOffer = (key: string, service: string): string | null => {
    const found = sticky.get(`${service}\n${key}`);
    return found && found.until > now() ? found.offer : null;
  };

  const enter = (
    offers: readonly Offer[],
    preferences: RoutePreferences,
    preferred: string | null,
    weigh: Weigh,
    account?: string,
    prefers?: (offer: Offer) => boolean,
  ): Entry[] => {
    const entries: Entry[] = [];
    for (const offer of offers) {
      const standing = health.standing(offer, account);
      if (standing === 'open') continue;
      const place = preferences.order.findIndex((wanted) => isProvider(offer, wanted));
      const first = standing !== 'resting';
      const ordered = first && place !== -1;
      entries.push({
        offer,
        standing,
        tier: ordered ? ORDERED : tierOf(standing, offer.id === preferred, prefers?.(offer) ?? false),
        key: ordered ? place : sortKey(offer, preferences.sort, health, weigh),
        draw: drawOf(weigh(offer), random(), health.compliance(offer)),
      });
    }
    return entries.sort((a, b) => a.tier - b.tier || a.key - b.key || a.draw - b.draw);
  };

  /** Leaves out offers that cost many times as much as the operator's own, where the operator serves the model. */
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
    choose(offers, preferences, stickyKey, images = 0, costOf, account, prefers) {
      const [only] = offers;
      if (only && offers.length === 1) {
        if (!accepts(preferences, only)) return [];
        const standing = health.standing(only, account);
        if (standing === 'probe') health.probing(only, account);
        return standing === 'open' ? [] : offers;
      }
      const weigh: Weigh =
        costOf === undefined ? (offer) => priceOf(offer, images) : (offer) => Number(costOf(offer)) * UNITS;
      const accepted = atUsualPrice(narrow(offers, preferences), preferences, weigh);
      const [first] = accepted;
      if (!first) return [];
      const entries = enter(
        accepted,
        preferences,
        stickyKey === null ? null : stickyOffer(stickyKey, first.service),
        weigh,
        account,
        prefers,
      );
      const [best, ...others] = entries;
      if (!best) return [];
      if (best.standing === 'probe') health.probing(best.offer, account);
      if (!preferences.allowFallbacks) return [best.offer];
      const chosen = [best.offer];
      // Resting offers are no fallback for a healthy one. A probe is, but after all that are well, whatever its price.
      const most = priceSpreadMax * Math.max(PRICE_FLOOR, weigh(best.offer));
      const affordable = others.filter(({ offer }) => isFair(offer, most, preferences, weigh));
      const usable =
        best.standing === 'resting' ? affordable : affordable.filter((entry) => entry.standing !== 'resting');
      for (const probe of [false, true])
        for (const entry of usable) if ((entry.standing === 'probe') === probe) chosen.push(entry.offer);
      return chosen.slice(0, attemptsMax);
    },
    served(stickyKey, offer) {
      const key = `${offer.service}\n${stickyKey}`;
      sticky.delete(key);
      dropOldest(sticky, stickyMax - 1);
      sticky.set(key, { offer: offer.id, until: now() + stickyTtlMs });
    },
  };
}

function tierOf(standing: Standing, isSticky: boolean, isPreferred: boolean): number {
  const tier = isSticky && standing !== 'resting' ? STICKY : TIERS[standing];
  return isPreferred && (tier === STICKY || standing === 'good') ? PREFERRED + tier : tier;
}

/** The offers that the preferences accept, whatever their health. */
function narrow(offers: readonly Offer[], preferences: RoutePreferences): readonly Offer[] {
  const { order, only, ignore, maxPrice, allowFallbacks } = preferences;
  const accepted =
    only.length === 0 && ignore.length === 0 && maxPrice === null
      ? offers
      : offers.filter((offer) => accepts(preferences, offer));
  if (allowFallbacks || order.length === 0) return accepted;
  // Without fallbacks an order names the one provider that may serve: the first of it that serves this at all.
  const wanted = order.find((one) => accepted.some((offer) => isProvider(offer, one)));
  return wanted === undefined ? [] : accepted.filter((offer) => isProvider(offer, wanted));
}

function accepts({ order, only, ignore, maxPrice, allowFallbacks }: RoutePreferences, offer: Offer): boolean {
  const isThis = (wanted: string) => isProvider(offer, wanted);
  if (only.length > 0 && !only.some(isThis)) return false;
  if (ignore.some(isThis)) return false;
  if (!allowFallbacks && order.length > 0 && !order.some(isThis)) return false;
  if (maxPrice === null) return true;
  const within = (meter: Meter, limit: bigint | undefined) =>
    limit === undefined || rateOf(offer.price.rates, meter) <= limit;
  return (
    within('prompt', maxPrice.prompt) &&
    within('input_cache_read', maxPrice.prompt) &&
    within('input_cache_write', maxPrice.prompt) &&
    within('completion', maxPrice.completion) &&
    // Images that are made cost by tier and quality: their own price is compared where it is known.
    (offer.primitive === 'image' || within('image', maxPrice.image))
  );
}

/**
 * Whether a call may cost what this offer asks: it is the operator's own, or within bounds, or the consumer named
 * its provider or what it would pay.
 */
function isFair(offer: Offer, most: number, { order, only, maxPrice }: RoutePreferences, weigh: Weigh): boolean {
  if (offer.endpoint.kind === 'direct' || weigh(offer) <= most || maxPrice !== null) return true;
  return [...order, ...only].some((wanted) => isProvider(offer, wanted));
}

/** Ids are keys: exact in base58, in any case where they are hex. Names are compared without regard to case. */
function isProvider({ provider: { id, name } }: Offer, wanted: string): boolean {
  if (id === wanted || (name.length === wanted.length && name.toLowerCase() === wanted.toLowerCase())) return true;
  return id.startsWith('0x') && id === wanted.toLowerCase();
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
 * A number whose lowest of several falls to each offer with a chance in proportion to its weight: an exponential
 * variate divided by the weight.
 */
function drawOf(blended: number, random: number, compliance: number): number {
  const price = Math.max(PRICE_FLOOR, blended);
  const trust = Math.max(COMPLIANCE_FLOOR, compliance);
  return (-Math.log(1 - random) * price * price) / (trust * trust);
}

/**
 * The price of an offer for a call with so many images: one that is cheap by the token may be dear by the image.
 */
function priceOf(offer: Offer, images: number): number {
  const blended = blendedPrice(offer);
  return images === 0 || offer.primitive !== 'model'
    ? blended
    : blended + (Number(offer.price.rates.image ?? 0n) * images) / TOKENS_PER_CALL;
}

const prices = new WeakMap<Offer, number>();

/**
 * Micro-USD per 1M, prompt and completion together. An offer without a price per token counts with the dearest part
 * of its price: a client that opens a session, or lists tools, has not said yet what it will call.
 */
function blendedPrice(offer: Offer): number {
  let price = prices.get(offer);
  if (price === undefined) {
    price =
      offer.primitive === 'model'
        ? tokenPrice(offer.price)
        : Math.max(...[offer.price, ...Object.values(offer.variants)].map(ratesTogether));
    if (offer.priceCap !== null) price = Math.max(price, Number(offer.priceCap) * UNITS);
    // An agent that may spend of its own is as dear as all of that.
    price += Number(offer.agent?.nestedMax ?? 0n) * UNITS;
    prices.set(offer, price);
  }
  return price;
}

const tokenPrice = ({ rates }: Price): number => Number(dearestPrompt(rates) + rateOf(rates, 'completion'));

const ratesTogether = ({
  rates: { prompt = 0n, completion = 0n, image = 0n, second = 0n, call = 0n },
}: Price): number => Number(prompt + completion + image + second + call);

import { maxPromptRate, rateOf } from '#billing/amounts';
import type { Offer } from '#catalog';
import { RecentMap } from '#maps';

/* Calls that are alike go to the same offer: those of one session, and those whose prompts begin alike. */

interface LastServed {
  /** The id of the offer of `service` that served it; null if it is not known or too long ago. */
  find(key: string, service: string): string | null;
  served(key: string, offer: Offer): void;
}

interface RememberOptions {
  readonly now: () => number;
  /** How long a key is remembered after the last call that was served with it. */
  readonly ttlMs: number;
  /** Maximum number of keys. Those used longest ago are forgotten first. */
  readonly max: number;
}

export function createLastServed({ now, ttlMs, max }: RememberOptions): LastServed {
  const known = new RecentMap<{ readonly offer: string; readonly until: number }>(max / 2);
  return {
    find(key, service) {
      const entry = known.get(`${service}\n${key}`);
      return entry && entry.until > now() ? entry.offer : null;
    },
    served(key, offer) {
      const prefixKey = `${offer.service}\n${key}`;
      known.set(prefixKey, { offer: offer.id, until: now() + ttlMs });
    },
  };
}

/** The beginning of a prompt that later calls repeat, so that a provider may have it in its cache. */
export interface PromptPrefix {
  /** The account, and a digest of the beginning. Accounts share nothing, so none learns what others send. */
  readonly key: string;
  /** Its estimated share of the prompt, 0 to 1. */
  readonly share: number;
}

/** A request whose prompt may begin as that of another one. */
export interface RepeatedPrompt {
  /** null if the beginning is too short to be cached. It is computed by this call, so only ask if it matters. */
  prefix(account: string): PromptPrefix | null;
}

/** Remembers which offer has a prefix in its cache. */
interface CachedPrefixes {
  /** The id of the offer of `service` that has it; null if none is known. */
  find(prefix: PromptPrefix, service: string): string | null;
  /** `isCached`: its reply says that tokens of the prompt were read from a cache, or written to one. */
  served(prefix: PromptPrefix, offer: Offer, isCached: boolean): void;
}

/** A prefix that was served. `cold`: no offer is known to have it. */
interface ServedPrefix {
  readonly offer: string;
  readonly until: number;
  readonly cold: boolean;
}

/**
 * Most replies do not say whether a provider keeps the prompt for the next call. So the offer that served a new prefix
 * gets the next such call, too. If that reply does not name cached tokens either, the prefix is cold: the calls are
 * spread as usual, until a reply names some.
 */
export function createCachedPrefixes({ now, ttlMs, max }: RememberOptions): CachedPrefixes {
  const known = new RecentMap<ServedPrefix>(max / 2);
  const find = (prefixKey: string): ServedPrefix | null => {
    const entry = known.get(prefixKey);
    return entry && entry.until > now() ? entry : null;
  };
  return {
    find({ key }, service) {
      const prefix = find(`${service}\n${key}`);
      return prefix === null || prefix.cold ? null : prefix.offer;
    },
    served({ key }, offer, isCached) {
      const prefixKey = `${offer.service}\n${key}`;
      const before = find(prefixKey);
      const cold = !isCached && before !== null && (before.cold || before.offer === offer.id);
      known.set(prefixKey, { offer: offer.id, until: now() + ttlMs, cold });
    },
  };
}

/** How much less 1M prompt tokens cost, in micro-USD, at an offer that has this share of them in its cache. */
export function savedByCache({ price: { rates } }: Offer, share: number): number {
  return Number(maxPromptRate(rates) - rateOf(rates, 'input_cache_read')) * share;
}

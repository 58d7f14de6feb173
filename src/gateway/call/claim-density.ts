import { dropOldest } from '#wire';
import type { Offer } from '#catalog';

/** Shown output and the tokens that a provider claimed for it. */
export interface ShownClaim {
  /** Without reasoning, which nobody sees. */
  readonly tokens: number;
  /** Of text alone. */
  readonly bytes: number;
}

/**
 * Compares the tokens that providers of one service claim for each byte of their answers. The same model has the same
 * tokens, so a provider that claims far more than the others sells tokens that it does not have, within what is
 * plausible for a single reply.
 */
export interface ClaimDensity {
  /** Counts a claim. Returns whether its offer claims far more than the others of its service. */
  add(offer: Pick<Offer, 'id' | 'service'>, claim: ShownClaim): boolean;
}

/** So many bytes of text have about the same density for all providers of a model, whatever their consumers ask. */
const JUDGED_BYTES = 16 * 1024;
/** The sums are halved beyond this, so that they follow a provider that changes. */
const KEPT_BYTES = 256 * 1024;
/** Times the median of the others. Texts in other languages and code differ by less, on average. */
const TIMES = 2;
const SERVICES_MAX = 2_000;
const OFFERS_MAX = 64;

interface Sums {
  tokens: number;
  bytes: number;
}

export function createClaimDensity(): ClaimDensity {
  const services = new Map<string, Map<string, Sums>>();
  return {
    add({ id, service }, { tokens, bytes }) {
      let offers = services.get(service);
      if (offers === undefined) {
        dropOldest(services, SERVICES_MAX - 1);
        services.set(service, (offers = new Map<string, Sums>()));
      }
      let own = offers.get(id);
      if (own === undefined) {
        dropOldest(offers, OFFERS_MAX - 1);
        offers.set(id, (own = { tokens: 0, bytes: 0 }));
      }
      own.tokens += tokens;
      own.bytes += bytes;
      if (own.bytes > KEPT_BYTES) Object.assign(own, { tokens: own.tokens / 2, bytes: own.bytes / 2 });
      if (own.bytes < JUDGED_BYTES || offers.size === 1) return false;
      const others = [...offers]
        .filter(([other, sums]) => other !== id && sums.bytes >= JUDGED_BYTES)
        .map(([, sums]) => densityOf(sums))
        .sort((a, b) => a - b);
      const median = others[others.length >> 1];
      return median !== undefined && densityOf(own) > TIMES * median;
    },
  };
}

const densityOf = ({ tokens, bytes }: Sums): number => tokens / bytes;

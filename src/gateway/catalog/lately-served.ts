import type { Primitive } from '#config';
import type { Offer } from '../call.ts';

/**
 * Names that were served a moment ago and have no provider now. A caller of such a name is asked to come back, not
 * told that it is mistyped.
 */
interface LatelyServed {
  /** The provider of these offers went away; `agoMs` before now. */
  add(offers: readonly Offer[], agoMs?: number): void;
  has(name: string, primitive: Primitive): boolean;
}

/** How long a name counts as lately served: time for a provider or a gateway to be replaced. */
export const LATELY_MS = 5 * 60_000;
const NAMES_MAX = 10_000;
/** Names that stay when there were too many, so that room is not made for each new name. */
const NAMES_LEFT = 9_000;

/** The names of one provider. */
interface Share {
  /** When its oldest offer was made. */
  since: number;
  /** The end of each service's time; those that were noted first come first. */
  readonly until: Map<string, number>;
}

/**
 * When there are too many names, the providers with the most names lose some; of equals, the younger. So neither a
 * stranger's thousand names nor a thousand strangers' names push out anybody else's. `elapsed`: milliseconds that
 * only go on.
 */
export function createLatelyServed(elapsed: () => number): LatelyServed {
  const shares = new Map<string, Share>();
  /** Of each service. */
  const holders = new Map<string, Set<Share>>();
  let total = 0;
  const keyOf = (name: string, primitive: Primitive) => `${primitive} ${name}`;

  const note = (share: Share, key: string, end: number) => {
    if (share.until.delete(key)) total--;
    share.until.set(key, end);
    total++;
    let of = holders.get(key);
    if (!of) holders.set(key, (of = new Set()));
    of.add(share);
  };

  const forget = (share: Share, key: string) => {
    share.until.delete(key);
    total--;
    const of = holders.get(key)!;
    of.delete(share);
    if (of.size === 0) holders.delete(key);
  };

  const makeRoom = () => {
    const now = elapsed();
    for (const [provider, share] of shares) {
      for (const [key, end] of share.until) if (end <= now) forget(share, key);
      if (share.until.size === 0) shares.delete(provider);
    }
    const most = levelOf(
      [...shares.values()].map(({ until }) => until.size),
      NAMES_LEFT,
    );
    const trim = (share: Share, left: number) => {
      for (const key of share.until.keys()) if (share.until.size > left) forget(share, key);
    };
    const large = [...shares].filter(([, { until }]) => until.size > most).sort(([, a], [, b]) => b.since - a.since);
    for (const [, share] of large) trim(share, most + 1);
    for (const [provider, share] of large) {
      if (total <= NAMES_LEFT) break;
      trim(share, most);
      if (most === 0) shares.delete(provider);
    }
  };

  return {
    add(offers, agoMs = 0) {
      const end = elapsed() + LATELY_MS - agoMs;
      for (const offer of offers) {
        let share = shares.get(offer.provider.id);
        if (!share) shares.set(offer.provider.id, (share = { since: offer.createdAt, until: new Map() }));
        share.since = Math.min(share.since, offer.createdAt);
        note(share, keyOf(offer.service, offer.primitive), end);
        if (total > NAMES_MAX) makeRoom();
      }
    },
    has(name, primitive) {
      const now = elapsed();
      const key = keyOf(name, primitive);
      for (const { until } of holders.get(key) ?? []) if (until.get(key)! > now) return true;
      // The direct form: no id of a provider has a colon.
      const [provider] = name.split(':', 1) as [string];
      const until = shares.get(provider)?.until.get(keyOf(name.slice(provider.length + 1), primitive));
      return until !== undefined && until > now;
    },
  };
}

/** The most that each may have, so that all of them together have at most `total`. */
function levelOf(sizes: readonly number[], total: number): number {
  let left = total;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const each = Math.floor(left / (ascending.length - index));
    if (size > each) return each;
    left -= size;
  }
  return total;
}

import type { Primitive } from '#config';
import type { Offer } from './offers.ts';

/**
 * Names that had a provider a moment ago and have none now. A caller of such a name is told to retry, not that the name
 * is wrong.
 */
interface LatelyServed {
  /** The provider of these offers left `agoMs` milliseconds ago. */
  add(offers: readonly Offer[], agoMs?: number): void;
  has(name: string, primitive: Primitive): boolean;
}

/** How long a name counts as lately served: enough time to replace a provider or a gateway. */
export const LATELY_MS = 5 * 60_000;
const NAMES_MAX = 10_000;
/** The number of names that stay after a clean-up, so that not every new name needs one. */
const NAMES_LEFT = 9_000;

interface Share {
  /** When its oldest offer was created. */
  since: number;
  /** When each service expires. The services that were added first come first. */
  readonly until: Map<string, number>;
}

/**
 * If there are too many names, the providers with the most names lose some. Among providers with equally many, the
 * younger ones lose first. So neither a stranger with a thousand names nor a thousand strangers can push out the names
 * of others. `elapsed`: a monotonic clock in milliseconds.
 */
export function createLatelyServed(elapsed: () => number): LatelyServed {
  const shares = new Map<string, Share>();
  const holders = new Map<string, Set<Share>>();
  let total = 0;
  const keyOf = (name: string, primitive: Primitive) => `${primitive} ${name}`;

  const note = (share: Share, key: string, end: number) => {
    if (share.until.delete(key)) total--;
    share.until.set(key, end);
    total++;
    let holding = holders.get(key);
    if (!holding) holders.set(key, (holding = new Set()));
    holding.add(share);
  };

  const forget = (share: Share, key: string) => {
    share.until.delete(key);
    total--;
    const holding = holders.get(key)!;
    holding.delete(share);
    if (holding.size === 0) holders.delete(key);
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
    const trim = (share: Share, namesMax: number) => {
      for (const key of share.until.keys()) if (share.until.size > namesMax) forget(share, key);
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
      // The direct form. Provider ids contain no colon.
      const [provider] = name.split(':', 1) as [string];
      const until = shares.get(provider)?.until.get(keyOf(name.slice(provider.length + 1), primitive));
      return until !== undefined && until > now;
    },
  };
}

/** The largest number that each may have so that all together have at most `total`. */
function levelOf(sizes: readonly number[], total: number): number {
  let remaining = total;
  const ascending = sizes.toSorted((a, b) => a - b);
  for (const [index, size] of ascending.entries()) {
    const each = Math.floor(remaining / (ascending.length - index));
    if (size > each) return each;
    remaining -= size;
  }
  return total;
}

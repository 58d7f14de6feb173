import type { Offer } from '#catalog';
import { SharedCache } from '#maps';
import { Shares } from '#wire';
import { CardUnavailable, fetchCard, type FetchCard, type KnownCard } from './fetch-card.ts';

export interface KnownCardsOptions {
  readonly fetch: FetchCard;
  readonly now: () => number;
  readonly random: () => number;
  readonly onError: (error: unknown, offer: Offer) => void;
  readonly onChanged?: (offer: Offer, card: KnownCard, before: KnownCard) => void;
  readonly networkOf: NetworkOf;
  readonly timeoutMs?: number;
  readonly bytesMax?: number;
}

/** The network that the provider of an offer dials from; null if it is not known. */
export type NetworkOf = (offer: Offer) => string | null;

interface KnownCards {
  /**
   * The agent's card; null if it has no card or cannot be reached. Waits for at most one fetch, and only if no card is
   * cached. Never rejects.
   */
  cardOf(offer: Offer): Promise<KnownCard | null>;
}

const FRESH_MS = 5 * 60_000;
const RETRY_MS = 30_000;
/** How long a card is used while it cannot be fetched again. */
const KEPT_MS = 24 * 3_600_000;
/**
 * The maximum of concurrent fetches, which networks of providers share. Anyone can cause a fetch, because requests for
 * cards need no credential. Beyond its share, an agent counts as one without a card.
 */
const FETCHES_MAX = 64;

interface CachedCard {
  card: KnownCard | null;
  fetchedAt: number;
  /** After this time the next request causes a new fetch. */
  staleAt: number;
  fetching: Promise<void> | null;
}

/**
 * Caches the cards of agents. A card is fresh for five minutes plus or minus 10 %, so that not all cards are fetched at
 * the same time. A stale card is fetched again in the background. Networks of providers share the cache.
 */
export function createKnownCards(options: KnownCardsOptions): KnownCards {
  const {
    fetch,
    now,
    random,
    onError,
    onChanged,
    networkOf,
    timeoutMs = 10_000,
    bytesMax = 32 * 1024 * 1024,
  } = options;
  const entries = new SharedCache<CachedCard>(bytesMax);
  const fetches = new Shares(FETCHES_MAX);
  const ownerOf = (offer: Offer) => networkOf(offer) ?? offer.provider.id;

  const jittered = (ms: number) => ms * (0.9 + 0.2 * random());

  function refresh(offer: Offer, entry: CachedCard): Promise<void> {
    if (entry.fetching) return entry.fetching;
    const owner = ownerOf(offer);
    if (!fetches.mayTake(owner)) return Promise.resolve();
    fetches.take(owner);
    entry.fetching = fetchWithin(fetch, offer, timeoutMs)
      .then(
        (card) => replace(offer, entry, card),
        (error: unknown) => {
          entry.staleAt = now() + jittered(RETRY_MS);
          onError(error, offer);
        },
      )
      .finally(() => {
        fetches.leave(owner);
        entry.fetching = null;
      });
    return entry.fetching;
  }

  function replace(offer: Offer, entry: CachedCard, card: KnownCard): void {
    const before = entry.card;
    entry.fetchedAt = now();
    entry.staleAt = now() + jittered(FRESH_MS);
    if (before?.hash === card.hash) return;
    entry.card = card;
    // The entry may have been dropped during the fetch.
    if (entries.get(keyOf(offer)) === entry) entries.set(keyOf(offer), entry, card.bytes, ownerOf(offer));
    if (before) onChanged?.(offer, card, before);
  }

  function entryOf(offer: Offer): CachedCard {
    const key = keyOf(offer);
    const known = entries.get(key);
    if (known !== undefined) return known;
    const entry = { card: null, fetchedAt: 0, staleAt: Number.NEGATIVE_INFINITY, fetching: null };
    entries.set(key, entry, 0, ownerOf(offer));
    return entry;
  }

  return {
    async cardOf(offer) {
      const entry = entryOf(offer);
      if (entry.card && now() - entry.fetchedAt > KEPT_MS) {
        entry.card = null;
        entries.set(keyOf(offer), entry, 0, ownerOf(offer));
      }
      if (now() >= entry.staleAt) {
        const refreshed = refresh(offer, entry);
        if (!entry.card) await refreshed;
      }
      return entry.card;
    },
  };
}

/** The key contains the endpoint, so the card is fetched again when the agent moves. */
function keyOf({ id, endpoint, agent }: Offer): string {
  return JSON.stringify([
    id,
    endpoint.kind === 'direct' ? endpoint.baseUrl : endpoint.basePath,
    agent?.cardPath ?? null,
  ]);
}

/** Rejects after `timeoutMs`, even if `fetch` ignores its signal. */
async function fetchWithin(fetch: FetchCard, offer: Offer, timeoutMs: number): Promise<KnownCard> {
  const gone = new AbortController();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new CardUnavailable(`The agent's card took longer than ${timeoutMs} ms`));
    gone.abort();
  }, timeoutMs);
  try {
    return await Promise.race([fetchCard(fetch, offer, gone.signal), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

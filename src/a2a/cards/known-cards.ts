import type { Offer } from '#catalog';
import { TransientMap } from '#maps';
import { CardUnavailable, fetchCard, type FetchCard, type KnownCard } from './fetch-card.ts';

export interface KnownCardsOptions {
  readonly fetch: FetchCard;
  readonly now: () => number;
  readonly random: () => number;
  readonly onError: (error: unknown, offer: Offer) => void;
  readonly onChanged?: (offer: Offer, card: KnownCard, before: KnownCard) => void;
  readonly timeoutMs?: number;
  readonly countMax?: number;
  readonly bytesMax?: number;
}

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
 * The maximum of concurrent fetches. Anyone can cause a fetch, because requests for cards need no credential. Beyond
 * the maximum, an agent counts as one without a card.
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
 * the same time. A stale card is fetched again in the background. The cache is bounded by number and size, and drops
 * the least recently requested cards first.
 */
export function createKnownCards(options: KnownCardsOptions): KnownCards {
  const {
    fetch,
    now,
    random,
    onError,
    onChanged,
    timeoutMs = 10_000,
    countMax = 5_000,
    bytesMax = 32 * 1024 * 1024,
  } = options;
  const entries = new TransientMap<string, CachedCard>();
  let bytes = 0;
  let fetches = 0;

  const jittered = (ms: number) => ms * (0.9 + 0.2 * random());

  function refresh(offer: Offer, entry: CachedCard): Promise<void> {
    if (entry.fetching) return entry.fetching;
    if (fetches >= FETCHES_MAX) return Promise.resolve();
    fetches++;
    entry.fetching = fetchWithin(fetch, offer, timeoutMs)
      .then(
        (card) => replace(offer, entry, card),
        (error: unknown) => {
          entry.staleAt = now() + jittered(RETRY_MS);
          onError(error, offer);
        },
      )
      .finally(() => {
        fetches--;
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
    if (entries.get(keyOf(offer)) === entry) bytes += card.bytes - (before?.bytes ?? 0);
    for (const [key, oldest] of entries) {
      if (bytes <= bytesMax || oldest === entry) break;
      forget(key, oldest);
    }
    if (before) onChanged?.(offer, card, before);
  }

  function forget(key: string, entry: CachedCard): void {
    entries.delete(key);
    bytes -= entry.card?.bytes ?? 0;
  }

  function entryOf(offer: Offer): CachedCard {
    const key = keyOf(offer);
    const entry = entries.get(key) ?? { card: null, fetchedAt: 0, staleAt: Number.NEGATIVE_INFINITY, fetching: null };
    entries.delete(key);
    entries.set(key, entry);
    if (entries.size > countMax) {
      for (const [oldestKey, oldest] of entries) {
        forget(oldestKey, oldest);
        break;
      }
    }
    return entry;
  }

  return {
    async cardOf(offer) {
      const entry = entryOf(offer);
      if (entry.card && now() - entry.fetchedAt > KEPT_MS) {
        bytes -= entry.card.bytes;
        entry.card = null;
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

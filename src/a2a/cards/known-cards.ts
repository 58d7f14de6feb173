import type { Offer } from '#gateway';
import { CardUnavailable, fetchCard, type FetchCard, type KnownCard } from './fetch-card.ts';

export interface KnownCardsOptions {
  readonly fetch: FetchCard;
  readonly now: () => number;
  readonly random: () => number;
  /** Called with the reason why a card could not be fetched. The card that is known stays. */
  readonly onError: (error: unknown, offer: Offer) => void;
  /** Told when an agent's card is another one than before. */
  readonly onChanged?: (offer: Offer, card: KnownCard, before: KnownCard) => void;
  readonly timeoutMs?: number;
  readonly countMax?: number;
  readonly bytesMax?: number;
}

/** The cards of agents, as far as they are known. */
interface KnownCards {
  /**
   * The agent's card; null where it has none or cannot be asked. Waits for one fetch at most, and only where
   * nothing is known yet. Never rejects.
   */
  cardOf(offer: Offer): Promise<KnownCard | null>;
}

const FRESH_MS = 5 * 60_000;
const RETRY_MS = 30_000;
/** So long a card stands that cannot be fetched again. */
const KEPT_MS = 24 * 3_600_000;
/** Asking for cards needs no credential: beyond so many fetches at once an agent counts as one without a card. */
const FETCHES_MAX = 64;

interface Entry {
  card: KnownCard | null;
  fetchedAt: number;
  /** After this time the next request for it has it fetched again. */
  staleAt: number;
  fetching: Promise<void> | null;
}

/**
 * Keeps the cards of agents. They are fresh for five minutes, give or take a tenth so that not all are fetched at
 * once; then they are fetched again in the background. Bounded by number and size; the least recently requested go
 * first.
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
  const entries = new Map<string, Entry>();
  let bytes = 0;
  let fetches = 0;

  const jittered = (ms: number) => ms * (0.9 + 0.2 * random());

  function refresh(offer: Offer, entry: Entry): Promise<void> {
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

  function replace(offer: Offer, entry: Entry, card: KnownCard): void {
    const before = entry.card;
    entry.fetchedAt = now();
    entry.staleAt = now() + jittered(FRESH_MS);
    if (before?.hash === card.hash) return;
    entry.card = card;
    // It may have gone while it was fetched.
    if (entries.get(keyOf(offer)) === entry) bytes += card.bytes - (before?.bytes ?? 0);
    for (const [key, oldest] of entries) {
      if (bytes <= bytesMax || oldest === entry) break;
      forget(key, oldest);
    }
    if (before) onChanged?.(offer, card, before);
  }

  function forget(key: string, entry: Entry): void {
    entries.delete(key);
    bytes -= entry.card?.bytes ?? 0;
  }

  function entryOf(offer: Offer): Entry {
    const key = keyOf(offer);
    const entry = entries.get(key) ?? { card: null, fetchedAt: 0, staleAt: Number.NEGATIVE_INFINITY, fetching: null };
    entries.delete(key);
    entries.set(key, entry);
    if (entries.size > countMax) {
      const [oldestKey, oldest] = entries.entries().next().value!;
      forget(oldestKey, oldest);
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

/** An agent that moved is asked anew. */
function keyOf({ id, endpoint, agent }: Offer): string {
  return JSON.stringify([
    id,
    endpoint.kind === 'direct' ? endpoint.baseUrl : endpoint.basePath,
    agent?.cardPath ?? null,
  ]);
}

/** Rejects when it takes longer, whether or not `fetch` heeds its signal. */
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

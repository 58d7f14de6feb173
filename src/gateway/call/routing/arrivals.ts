import type { Offer } from '#catalog';

/**
 * Lets calls wait for a provider when all are away, for example after a restart of the gateway, until the proxies have
 * reconnected.
 */
export interface Arrivals {
  /**
   * null if one of the providers can be reached now. Also null if all offers are of one provider, because a call to it
   * waits for the provider anyway. Otherwise resolves with true when the first provider can be reached, or with false
   * after the wait.
   */
  waitFor(offers: readonly Offer[]): Promise<boolean> | null;
  /** Ends all waits. From now on no call waits. */
  close(): void;
}

interface ArrivalsOptions {
  /** False while an offer's provider is connected to no gateway. */
  readonly present: (offer: Offer) => boolean;
  /** Registers a listener for every provider that can be reached again. */
  readonly onReturned: (listener: (provider: string) => void) => void;
  readonly waitMs: number;
}

export function createArrivals({ present, onReturned, waitMs }: ArrivalsOptions): Arrivals {
  const waiting = new Set<{ readonly providers: ReadonlySet<string>; readonly end: (arrived: boolean) => void }>();
  let closed = false;
  onReturned((provider) => {
    for (const { providers, end } of waiting) if (providers.has(provider)) end(true);
  });
  return {
    waitFor(offers) {
      if (closed || waitMs === 0 || offers.some(present)) return null;
      const providers = new Set(offers.map((offer) => offer.provider.id));
      if (providers.size < 2) return null;
      return new Promise((resolve) => {
        const end = (arrived: boolean) => {
          clearTimeout(timer);
          waiting.delete(waiter);
          resolve(arrived);
        };
        const waiter = { providers, end };
        const timer = setTimeout(end, waitMs, false);
        waiting.add(waiter);
      });
    },
    close() {
      closed = true;
      for (const { end } of waiting) end(false);
    },
  };
}

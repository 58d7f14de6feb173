import type { Offer } from '../call.ts';

/**
 * Lets calls wait for a provider when all are away, such as after a restart of the gateway, when all proxies are on
 * their way back.
 */
export interface Arrivals {
  /**
   * null where a provider of these offers can be reached now, and where all are of one provider: a call to it waits
   * for it by itself. Else settles when the first of them can be reached, with true, or after the wait, with false.
   */
  waitFor(offers: readonly Offer[]): Promise<boolean> | null;
  /** Nobody is waited for any more. */
  close(): void;
}

interface ArrivalsOptions {
  /** False while an offer's provider is connected nowhere. */
  readonly present: (offer: Offer) => boolean;
  /** Tells of every provider that can be reached again. */
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

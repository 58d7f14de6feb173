import type { Location } from './registry.ts';

/** Calls that wait for a provider to connect. */
export interface Waiters {
  /** Resolves with the location that `wake` gives, or with null after `ms`. */
  wait(provider: string, ms: number): Promise<Location | null>;
  wake(provider: string, location: Location): void;
  /** Resolves every wait with null. */
  close(): void;
}

export function createWaiters(): Waiters {
  const waiting = new Map<string, Set<(location: Location | null) => void>>();
  return {
    wait: (provider, ms) =>
      new Promise((resolve) => {
        let waiters = waiting.get(provider);
        if (!waiters) waiting.set(provider, (waiters = new Set()));
        const wake = (found: Location | null) => {
          clearTimeout(timer);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiters.delete(wake);
          if (waiters.size === 0 && waiting.get(provider) === waiters) waiting.delete(provider);
          resolve(null);
        }, ms);
        waiters.add(wake);
      }),
    wake(provider, location) {
      const woken = waiting.get(provider);
      waiting.delete(provider);
      for (const wake of woken ?? []) wake(location);
    },
    close() {
      for (const waiters of waiting.values()) for (const wake of waiters) wake(null);
      waiting.clear();
    },
  };
}

import type { Location } from './registry.ts';

/** Calls that wait for a provider to connect. */
export class Waiters {
  readonly #waiting = new Map<string, Set<(location: Location | null) => void>>();

  /** Resolves with the location that `wake` gives, or with null after `ms`. */
  wait(provider: string, ms: number): Promise<Location | null> {
    return new Promise((resolve) => {
      const waiters = this.#waiting.get(provider) ?? new Set();
      this.#waiting.set(provider, waiters);
      const wake = (found: Location | null) => {
        clearTimeout(timer);
        resolve(found);
      };
      const timer = setTimeout(() => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.#waiting.get(provider) === waiters) this.#waiting.delete(provider);
        resolve(null);
      }, ms);
      waiters.add(wake);
    });
  }

  wake(provider: string, location: Location): void {
    const woken = this.#waiting.get(provider);
    this.#waiting.delete(provider);
    for (const wake of woken ?? []) wake(location);
  }

  /** Resolves every wait with null. */
  close(): void {
    for (const waiters of this.#waiting.values()) for (const wake of waiters) wake(null);
    this.#waiting.clear();
  }
}

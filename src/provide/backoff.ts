interface Backoff {
  /** Milliseconds to wait before the next try: random, between 0 and a maximum that doubles with each try. */
  next(): number;
  reset(): void;
}

/** Full jitter: proxies that lost the same router return spread over the whole time, not in waves. */
export function createBackoff(
  random: () => number,
  { baseMs = 250, maxMs = 15_000 }: { readonly baseMs?: number; readonly maxMs?: number } = {},
): Backoff {
  let tries = 0;
  return {
    next: () => Math.floor(random() * Math.min(maxMs, baseMs * 2 ** Math.min(tries++, 30))),
    reset() {
      tries = 0;
    },
  };
}

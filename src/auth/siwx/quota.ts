import { dropOldest } from '#wire';

/** Limits how often something is done for each key. */
interface Quota {
  /** Takes one token and returns 0. Without a token, returns the milliseconds until the next one. */
  take(key: string): number;
}

/** The limit of tracked keys. Beyond it, the least recently used key is dropped. */
const KEYS_MAX = 10_000;
const MINUTE_MS = 60_000;

/** A token bucket for each key, stored as the time at which it will be full again. `now`: monotonic milliseconds. */
export function createQuota({ perMinute, now }: { readonly perMinute: number; readonly now: () => number }): Quota {
  const fullAt = new Map<string, number>();
  const intervalMs = MINUTE_MS / perMinute;
  return {
    take(key) {
      const at = now();
      const next = Math.max(at, fullAt.get(key) ?? at) + intervalMs;
      if (next > at + MINUTE_MS) return next - at - MINUTE_MS;
      fullAt.delete(key);
      dropOldest(fullAt, KEYS_MAX - 1);
      fullAt.set(key, next);
      return 0;
    },
  };
}

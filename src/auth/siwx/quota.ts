import { dropOldest } from '#wire';

/** Bounds how often something is done under a key. */
interface Quota {
  /** Takes one; returns 0, or the milliseconds until the next one is there. */
  take(key: string): number;
}

/** Keys that are remembered. Beyond that, the one that was used up first is forgotten. */
const KEYS_MAX = 10_000;
const MINUTE_MS = 60_000;

/** A token bucket for each key, kept as the time at which it will be full again. `now` is in monotonic milliseconds. */
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

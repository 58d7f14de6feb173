import { bucketsOf, costMs, decide, waitMs } from './bucket.ts';
import type { RateAmount, RateDecision, RateLimiter, RatePolicy } from './limiter.ts';

/**
 * Maximum number of keys in memory, about 100 bytes each. Above it the oldest keys are deleted, so their buckets are
 * full again.
 */
const KEYS_MAX = 100_000;
const SWEEP_AT_LEAST = 1_024;

/** When each bucket of a key will be full again, on the limiter's clock. */
interface FullAt {
  requests: number;
  tokens: number;
}

interface LocalLimiter extends RateLimiter {
  take(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
  /** The decision of `take`, without taking anything. */
  check(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
  /** Number of keys in memory. */
  size(): number;
}

/** Limits by the requests of this process alone. */
export function createLocalLimiter({
  now,
  keysMax = KEYS_MAX,
}: {
  readonly now: () => number;
  readonly keysMax?: number;
}): LocalLimiter {
  const keys = new Map<string, FullAt>();
  let sweepAt = Math.min(SWEEP_AT_LEAST, keysMax);

  /**
   * Deletes keys whose buckets are full, and then the oldest keys if that is not enough. Each run makes room for many
   * keys, so its cost per key is small.
   */
  const sweep = (at: number) => {
    for (const [key, full] of keys) if (full.requests <= at && full.tokens <= at) keys.delete(key);
    const keep = Math.floor(keysMax * 0.9);
    for (const key of keys.keys()) {
      if (keys.size <= keep) break;
      keys.delete(key);
    }
    sweepAt = Math.min(keysMax, Math.max(SWEEP_AT_LEAST, keys.size * 2));
  };

  const run = (key: string, policy: RatePolicy, amount: RateAmount, take: boolean): RateDecision => {
    const at = now();
    const buckets = bucketsOf(policy);
    const full = keys.get(key);
    const requestsMs = debtMs(full?.requests, at, buckets.requests.depthMs);
    const tokensMs = debtMs(full?.tokens, at, buckets.tokens.depthMs);
    if (
      waitMs(buckets.requests, requestsMs, amount.requests) > 0 ||
      waitMs(buckets.tokens, tokensMs, amount.tokens) > 0
    ) {
      if (full) {
        // The debt of the decision is kept. Otherwise a key whose bucket has become smaller would be refused until
        // the larger one had drained.
        full.requests = at + requestsMs;
        full.tokens = at + tokensMs;
      }
      return decide(buckets, { requestsMs, tokensMs }, amount, false);
    }
    const after = {
      requestsMs: requestsMs + costMs(buckets.requests, amount.requests),
      tokensMs: tokensMs + costMs(buckets.tokens, amount.tokens),
    };
    if (take) {
      if (full) {
        full.requests = at + after.requestsMs;
        full.tokens = at + after.tokensMs;
      } else {
        if (keys.size >= sweepAt) sweep(at);
        keys.set(key, { requests: at + after.requestsMs, tokens: at + after.tokensMs });
      }
    }
    return decide(buckets, after, amount, true);
  };

  return {
    take: (key, policy, amount) => run(key, policy, amount, true),
    check: (key, policy, amount) => run(key, policy, amount, false),
    size: () => keys.size,
  };
}

/**
 * The debt is never more than that of an empty bucket. So a smaller policy, or a clock that was set back, makes no key
 * wait longer than that.
 */
function debtMs(fullAt: number | undefined, at: number, depthMs: number): number {
  return fullAt === undefined || fullAt <= at ? 0 : Math.min(fullAt - at, depthMs);
}

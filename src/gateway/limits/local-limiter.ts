import { bucketsOf, costMs, decide, waitMs } from './bucket.ts';
import type { RateAmount, RateDecision, RateLimiter, RatePolicy } from './limiter.ts';

/**
 * Keys remembered at once, about 100 bytes each. Beyond that the one seen first is forgotten, that is, gets full
 * buckets.
 */
const KEYS_MAX = 100_000;
const SWEEP_AT_LEAST = 1_024;

/** When each bucket of a key is full again, by the limiter's clock. */
interface FullAt {
  requests: number;
  tokens: number;
}

interface LocalLimiter extends RateLimiter {
  take(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
  /** Decides as `take` would, without taking. */
  check(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
  /** Keys remembered. */
  size(): number;
}

/** Limits by what this process has seen. */
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
   * Forgets keys whose buckets are full, and the first seen where that is not enough. Each run makes room for many
   * keys, so that it costs little for each.
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
 * Never more than an empty bucket: a policy that shrank, or a clock that was set back, makes no key wait longer
 * than that.
 */
function debtMs(fullAt: number | undefined, at: number, depthMs: number): number {
  return fullAt === undefined || fullAt <= at ? 0 : Math.min(fullAt - at, depthMs);
}

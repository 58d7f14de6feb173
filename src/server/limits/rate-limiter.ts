import { after } from '#wire';
/**
 * Requests and tokens per minute of one key. Each is a bucket that refills at a steady rate. The request bucket holds
 * the requests of one minute plus `burst`: with 60 and 20, 80 requests can pass at once and then one per second. The
 * token bucket holds the tokens of one minute.
 */
export interface RatePolicy {
  readonly requestsPerMinute: number;
  readonly burst: number;
  readonly tokensPerMinute: number;
}

export interface RateAmount {
  readonly requests: number;
  readonly tokens: number;
}

export interface RateWindow {
  /**
   * The steady rate. Clients are shown this rate, because a client that planned with the burst would expect more than
   * it gets.
   */
  readonly perMinute: number;
  /** The most that can pass at once, including the burst. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the bucket is full again. */
  readonly resetS: number;
}

export interface RateDecision {
  readonly allowed: boolean;
  /** Seconds until a retry can pass; 0 when allowed. */
  readonly retryAfterS: number;
  readonly requests: RateWindow;
  readonly tokens: RateWindow;
}

/** Synchronous in process; a promise with Redis. Never rejects: without Redis it limits locally. */
export interface RateLimiter {
  take(key: string, policy: RatePolicy, amount: RateAmount): RateDecision | Promise<RateDecision>;
}

/*
 * A token bucket that is stored as one number: the time at which it will be full again (the generic cell rate
 * algorithm). Taking n units moves that time n intervals ahead. It may be at most `depthMs` ahead of now. If the time
 * is in the past, the bucket is full, like a bucket that was never used. So idle buckets can be deleted without loss.
 */

/** The buckets of a policy. The algorithm needs the milliseconds for one unit and for the whole bucket. */
export interface Buckets {
  readonly requests: Bucket;
  readonly tokens: Bucket;
}

interface Bucket {
  readonly perMinute: number;
  readonly size: number;
  readonly intervalMs: number;
  readonly depthMs: number;
}

/** A rate per minute that stands for no limit. Nobody is that fast, and the headers leave it out. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

const MINUTE_MS = 60_000;
const cache = new WeakMap<RatePolicy, Buckets>();

/** Policies are few and long-lived, so the buckets of each are computed once. */
export function bucketsOf(policy: RatePolicy): Buckets {
  let buckets = cache.get(policy);
  if (!buckets) {
    buckets = {
      requests: bucketOf(policy.requestsPerMinute, policy.requestsPerMinute + policy.burst),
      tokens: bucketOf(policy.tokensPerMinute, policy.tokensPerMinute),
    };
    cache.set(policy, buckets);
  }
  return buckets;
}

function bucketOf(perMinute: number, size: number): Bucket {
  const intervalMs = MINUTE_MS / perMinute;
  return { perMinute, size, intervalMs, depthMs: size * intervalMs };
}

/**
 * The milliseconds that `units` take from a bucket. A request for more units than the bucket can hold needs a full
 * bucket, as it could never pass otherwise.
 */
export function costMs(bucket: Bucket, units: number): number {
  return Math.min(units, bucket.size) * bucket.intervalMs;
}

/** Tolerance for rounding, so that the last unit of a bucket is not refused. */
const SLACK_MS = 0.001;

/** Milliseconds until `units` fit into a bucket with this debt; 0 when they fit now. Zero units always fit. */
function waitMs(bucket: Bucket, debtMs: number, units: number): number {
  if (units <= 0) return 0;
  const wait = debtMs + costMs(bucket, units) - bucket.depthMs;
  return wait > SLACK_MS ? wait : 0;
}

/**
 * The decision to report, from the debts after it was made. Its windows are computed when they are asked for: nobody
 * looks at those of a call's tokens, which are counted at its end.
 */
export class BucketDecision implements RateDecision {
  readonly allowed: boolean;
  readonly retryAfterS: number;
  readonly #buckets: Buckets;
  readonly #requestsMs: number;
  readonly #tokensMs: number;

  /** `requestsMs`, `tokensMs`: how far the time of each bucket is ahead of now; 0 means full, `depthMs` means empty. */
  constructor(buckets: Buckets, requestsMs: number, tokensMs: number, amount: RateAmount, allowed: boolean) {
    this.allowed = allowed;
    this.retryAfterS = allowed ? 0 : retryAfterS(buckets, requestsMs, tokensMs, amount);
    this.#buckets = buckets;
    this.#requestsMs = requestsMs;
    this.#tokensMs = tokensMs;
  }

  get requests(): RateWindow {
    return windowOf(this.#buckets.requests, this.#requestsMs);
  }

  get tokens(): RateWindow {
    return windowOf(this.#buckets.tokens, this.#tokensMs);
  }
}

function retryAfterS({ requests, tokens }: Buckets, requestsMs: number, tokensMs: number, amount: RateAmount): number {
  const wait = Math.max(waitMs(requests, requestsMs, amount.requests), waitMs(tokens, tokensMs, amount.tokens));
  return Math.max(0.001, wait / 1_000);
}

function windowOf(bucket: Bucket, debtMs: number): RateWindow {
  const remaining = Math.floor((bucket.depthMs - debtMs + SLACK_MS) / bucket.intervalMs);
  return {
    perMinute: bucket.perMinute,
    limit: bucket.size,
    remaining: Math.max(0, Math.min(bucket.size, remaining)),
    resetS: debtMs / 1_000,
  };
}

/**
 * Maximum number of keys in memory, about 100 bytes each. Above it the oldest keys are deleted, so their buckets are
 * full again.
 */
const KEYS_MAX = 100_000;
const SWEEP_AT_LEAST = 1_024;

/** When each bucket of a key will be full again, on the limiter's clock, and the buckets by which that was computed. */
interface FullAt {
  requests: number;
  tokens: number;
  buckets: Buckets;
}

interface LocalLimiter extends RateLimiter {
  take(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
  /** The decision of `take`, without taking anything. */
  check(key: string, policy: RatePolicy, amount: RateAmount): RateDecision;
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
    const requestsMs = debtMs(full?.requests, at, buckets.requests, full?.buckets.requests);
    const tokensMs = debtMs(full?.tokens, at, buckets.tokens, full?.buckets.tokens);
    if (
      waitMs(buckets.requests, requestsMs, amount.requests) > 0 ||
      waitMs(buckets.tokens, tokensMs, amount.tokens) > 0
    ) {
      if (full) {
        // The debt of the decision is kept. Otherwise a key whose bucket has become smaller would be refused until
        // the larger one had drained.
        full.requests = at + requestsMs;
        full.tokens = at + tokensMs;
        full.buckets = buckets;
      }
      return new BucketDecision(buckets, requestsMs, tokensMs, amount, false);
    }
    const requestsAfterMs = requestsMs + costMs(buckets.requests, amount.requests);
    const tokensAfterMs = tokensMs + costMs(buckets.tokens, amount.tokens);
    if (take) {
      if (full) {
        full.requests = at + requestsAfterMs;
        full.tokens = at + tokensAfterMs;
        full.buckets = buckets;
      } else {
        if (keys.size >= sweepAt) sweep(at);
        keys.set(key, { requests: at + requestsAfterMs, tokens: at + tokensAfterMs, buckets });
      }
    }
    return new BucketDecision(buckets, requestsAfterMs, tokensAfterMs, amount, true);
  };

  return {
    take: (key, policy, amount) => run(key, policy, amount, true),
    check: (key, policy, amount) => run(key, policy, amount, false),
    size: () => keys.size,
  };
}

/**
 * The debt is never more than that of an empty bucket. So a smaller policy, or a clock that was set back, makes no key
 * wait longer than that. `before`: the bucket by which the time was computed. If its rate was another one, the units
 * that were taken count at the new rate, so that a rate that was raised holds at once.
 */
function debtMs(fullAt: number | undefined, at: number, bucket: Bucket, before: Bucket = bucket): number {
  if (fullAt === undefined || fullAt <= at) return 0;
  const debt = Math.min(fullAt - at, before.depthMs);
  return Math.min(before === bucket ? debt : (debt / before.intervalMs) * bucket.intervalMs, bucket.depthMs);
}

/**
 * Counts the tokens of a call against its key's rate, once they are known. A call that uses more than is left empties
 * the bucket. It is still answered, but the key's next requests have to wait.
 */
export function spendTokens(limiter: RateLimiter, key: string, policy: RatePolicy, tokens: number): void {
  // The first refusal may come from this process, which does not know what other gateways have counted. So the rest may
  // be refused again, by Redis. Each try is smaller than the one before.
  const spent = limiter.take(key, policy, { requests: 0, tokens });
  void after(spent, (decision) => {
    if (decision.allowed) return;
    const { remaining } = decision.tokens;
    if (remaining > 0 && remaining < tokens) spendTokens(limiter, key, policy, remaining);
  });
}

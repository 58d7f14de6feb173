import type { RateAmount, RateDecision, RatePolicy, RateWindow } from './limiter.ts';

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
  /** Units that refill per minute. */
  readonly perMinute: number;
  /** Maximum number of units. */
  readonly size: number;
  readonly intervalMs: number;
  readonly depthMs: number;
}

/** How far each bucket's time is ahead of now, in milliseconds: 0 means full, `depthMs` means empty. */
interface Debt {
  readonly requestsMs: number;
  readonly tokensMs: number;
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
export const SLACK_MS = 0.001;

/** Milliseconds until `units` fit into a bucket with this debt; 0 when they fit now. Zero units always fit. */
export function waitMs(bucket: Bucket, debtMs: number, units: number): number {
  if (units <= 0) return 0;
  const wait = debtMs + costMs(bucket, units) - bucket.depthMs;
  return wait > SLACK_MS ? wait : 0;
}

/** The decision to report, computed from the debts after it was made. */
export function decide(buckets: Buckets, debt: Debt, amount: RateAmount, allowed: boolean): RateDecision {
  let retryAfterS = 0;
  if (!allowed) {
    const wait = Math.max(
      waitMs(buckets.requests, debt.requestsMs, amount.requests),
      waitMs(buckets.tokens, debt.tokensMs, amount.tokens),
    );
    retryAfterS = Math.max(0.001, wait / 1_000);
  }
  return {
    allowed,
    retryAfterS,
    requests: windowOf(buckets.requests, debt.requestsMs),
    tokens: windowOf(buckets.tokens, debt.tokensMs),
  };
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

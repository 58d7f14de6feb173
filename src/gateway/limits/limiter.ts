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

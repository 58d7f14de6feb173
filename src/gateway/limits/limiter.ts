/**
 * Requests and tokens per minute of one key, each as a bucket that refills at the steady rate. The request bucket
 * holds `burst` on top of one minute's requests, so 60 + 20 lets 80 through at once and one a second after that;
 * the token bucket holds one minute's tokens.
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
  /** The steady rate, for clients: a client that planned by the burst would plan for more than it gets. */
  readonly perMinute: number;
  /** The most that passes at once, burst included. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the window is whole again. */
  readonly resetS: number;
}

export interface RateDecision {
  readonly allowed: boolean;
  /** Seconds until a retry can pass; 0 when allowed. */
  readonly retryAfterS: number;
  readonly requests: RateWindow;
  readonly tokens: RateWindow;
}

/** Synchronous in process, a promise through Redis; never rejects: without Redis it limits locally. */
export interface RateLimiter {
  take(key: string, policy: RatePolicy, amount: RateAmount): RateDecision | Promise<RateDecision>;
}

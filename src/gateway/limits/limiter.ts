/** Requests and tokens per minute of one key. `burst` requests may come at once on top of the steady rate. */
export interface RatePolicy {
  readonly requestsPerMinute: number;
  readonly burst: number;
  readonly tokensPerMinute: number;
}

export interface RateWindow {
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
  take(key: string, policy: RatePolicy, amount: { readonly requests: number; readonly tokens: number }): RateDecision | Promise<RateDecision>;
}

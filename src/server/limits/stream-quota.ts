/**
 * The longest time that a stream lasts, in milliseconds. Then it ends with its last event and its client reconnects.
 * The timeout of its call is longer.
 */
export const LISTEN_MS = 3_600_000;

/** A limited number of event streams for each account. */
export interface StreamQuota {
  /** null if the account has too many streams, or if the gateway stops: see `refusal`. */
  take(account: string): StreamSlot | null;
  /** The reason for a refusal: the gateway's error code, its HTTP status, and a sentence. */
  refusal(): {
    readonly code: 'rate_limit_exceeded' | 'service_unavailable';
    readonly status: 429 | 503;
    readonly message: string;
  };
  readonly draining: boolean;
  readonly count: number;
  /** Ends all streams, because the gateway stops. The clients reconnect to another gateway. */
  drain(): void;
}

export interface StreamSlot {
  /** Aborts when the stream has to end. */
  readonly over: AbortSignal;
  end(): void;
  /** Gives the place back after the stream has ended. Called once. */
  leave(): void;
}

interface StreamQuotaOptions {
  readonly max: number;
  /** The number of streams of each account, if several StreamQuota are counted together; default these alone. */
  readonly ofAccount?: Counter;
  readonly lastsMs?: number;
}

export function createStreamQuota({
  max,
  ofAccount = createCounter(),
  lastsMs = LISTEN_MS,
}: StreamQuotaOptions): StreamQuota {
  const open = new Set<AbortController>();
  let draining = false;

  return {
    take(account) {
      if (draining || ofAccount.countOf(account) >= max) return null;
      ofAccount.add(account, 1);
      const stop = new AbortController();
      open.add(stop);
      const end = () => stop.abort(OVER);
      const timer = setTimeout(end, lastsMs);
      return {
        over: stop.signal,
        end,
        leave() {
          clearTimeout(timer);
          open.delete(stop);
          ofAccount.add(account, -1);
          end();
        },
      };
    },
    refusal: () =>
      draining
        ? { code: 'service_unavailable', status: 503, message: 'The gateway is shutting down' }
        : {
            code: 'rate_limit_exceeded',
            status: 429,
            message: `This account listens on ${max} streams, which is its limit: end one of them first`,
          },
    get draining() {
      return draining;
    },
    get count() {
      return open.size;
    },
    drain() {
      draining = true;
      for (const stop of open) stop.abort(OVER);
    },
  };
}

export const OVER = new Error('the stream is over');

/** Counts by name. Names with the count zero are deleted. */
export interface Counter {
  countOf(key: string): number;
  add(key: string, count: 1 | -1): void;
}

export function createCounter(): Counter {
  const counts = new Map<string, number>();
  return {
    countOf: (key) => counts.get(key) ?? 0,
    add(key, count) {
      const now = (counts.get(key) ?? 0) + count;
      if (now > 0) counts.set(key, now);
      else counts.delete(key);
    },
  };
}

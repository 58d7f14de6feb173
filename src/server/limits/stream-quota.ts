import { PartyShares, partyOf } from '#wire/places';

/** The streams of all accounts, see PartyShares. */
export type StreamShares = PartyShares;
export const createStreamShares = (max: number): StreamShares => new PartyShares(max);

/**
 * The longest time that a stream lasts, in milliseconds. Then it ends with its last event and its client reconnects.
 * The timeout of its call is longer.
 */
export const LISTEN_MS = 3_600_000;

/** The owner of a stream. */
interface StreamOwner {
  readonly account: string;
  /** The part of the account, see ownPartOf. Absent or null: the whole. */
  readonly within?: string | null;
}

/** A limited number of event streams for each account, which its parts share. */
export interface StreamQuota {
  /** null if the owner has its share of streams, or if the gateway stops: see `refusal`. */
  take(owner: StreamOwner): StreamSlot | null;
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
  /** The streams of all, if several StreamQuota with one `max` are counted together; default these alone. */
  readonly ofAccounts?: PartyShares;
  readonly lastsMs?: number;
}

export function createStreamQuota({
  max,
  ofAccounts = new PartyShares(max),
  lastsMs = LISTEN_MS,
}: StreamQuotaOptions): StreamQuota {
  const open = new Set<AbortController>();
  let draining = false;

  return {
    take(owner) {
      const party = partyOf(owner);
      if (draining || !ofAccounts.mayTake(party)) return null;
      ofAccounts.take(party);
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
          ofAccounts.leave(party);
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
            message: `This account, or this key with the other keys of it, listens on ${max} streams, which is its limit: end one of them first`,
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

import { createTally, type Tally } from './tally.ts';

/** A stream ends after this with its last event, and its client comes back. The timeout of its call is longer. */
export const LISTEN_MS = 3_600_000;

/** Places for streams that clients listen on, so many for each account. */
export interface ListenPlaces {
  /** null where the account has as many as it may, or the gateway stops: `refusal` says which. */
  take(account: string): ListenPlace | null;
  /** The reason for a refusal: an error code of the gateway, its HTTP status, and a sentence. */
  refusal(): {
    readonly code: 'rate_limit_exceeded' | 'service_unavailable';
    readonly status: 429 | 503;
    readonly message: string;
  };
  readonly draining: boolean;
  /** Streams that are open. */
  readonly count: number;
  /** Ends all streams, as the gateway stops: their clients come back to another one. */
  drain(): void;
}

export interface ListenPlace {
  /** Aborts when the stream is to end. */
  readonly over: AbortSignal;
  /** Ends the stream. */
  end(): void;
  /** The stream is over. Called once. */
  leave(): void;
}

interface ListenPlacesOptions {
  /** Streams of one account. */
  readonly max: number;
  /** Those of each account, of all places that are counted together; default these alone. */
  readonly ofAccount?: Tally;
  readonly lastsMs?: number;
}

export function createListenPlaces({
  max,
  ofAccount = createTally(),
  lastsMs = LISTEN_MS,
}: ListenPlacesOptions): ListenPlaces {
  const open = new Set<AbortController>();
  let draining = false;

  return {
    take(account) {
      if (draining || ofAccount.of(account) >= max) return null;
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
            message: `This account listens on ${max} streams, which is as many as it may: end one of them first`,
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

/** The reason for the end of a stream's source. */
export const OVER = new Error('the stream is over');

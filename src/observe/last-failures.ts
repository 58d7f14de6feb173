import type { Offer } from '#catalog';
import type { CallSink } from './observer.ts';

/** An attempt that failed at a provider that dialled in, for this provider. */
export interface FailedAttempt {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The `x-request-id` that its service got. */
  readonly requestId: string;
  /** The HTTP status of the service; null if there was none. */
  readonly status: number | null;
  readonly reason: string;
  /** The first words of the service; null without any. */
  readonly said: string | null;
}

/** The newest failed attempts of each offer at this gateway. */
export interface LastFailures {
  readonly sink: CallSink;
  /** The newest first. */
  of(offer: Pick<Offer, 'id'>): readonly FailedAttempt[];
}

const KEPT = 20;
/** Of all offers together. The newest failures of any offer come last, and the first offers are forgotten. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Of an attempt without its texts, about. */
const ATTEMPT_BYTES = 200;

export function createLastFailures(now: () => number): LastFailures {
  const kept = new Map<string, readonly FailedAttempt[]>();
  let bytes = 0;
  const drop = (id: string): readonly FailedAttempt[] => {
    const attempts = kept.get(id) ?? [];
    kept.delete(id);
    for (const one of attempts) bytes -= bytesOf(one);
    return attempts;
  };
  return {
    sink: {
      attemptFailed({ requestId }, { id, endpoint }, { attributedTo, status, message, said }) {
        // Of the operator's own providers the log tells. What an account did is no matter of the provider.
        if (endpoint.kind !== 'tunnel' || attributedTo === 'account') return;
        const newest = { at: now(), requestId, status, reason: message, said };
        const attempts = [newest, ...drop(id)].slice(0, KEPT);
        kept.set(id, attempts);
        for (const one of attempts) bytes += bytesOf(one);
        for (const oldest of kept.keys()) {
          if (bytes <= BYTES_MAX) break;
          drop(oldest);
        }
      },
    },
    of: ({ id }) => kept.get(id) ?? [],
  };
}

const bytesOf = ({ requestId, reason, said }: FailedAttempt): number =>
  ATTEMPT_BYTES + 2 * (requestId.length + reason.length + (said?.length ?? 0));

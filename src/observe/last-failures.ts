import { dropOldest } from '#wire';
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

const KEPT = 5;
const OFFERS_MAX = 10_000;

export function createLastFailures(now: () => number): LastFailures {
  const kept = new Map<string, readonly FailedAttempt[]>();
  return {
    sink: {
      attemptFailed({ requestId }, { id, endpoint }, { attributedTo, status, message, detail, cause }) {
        // Of the operator's own providers the log tells. What an account did is no matter of the provider.
        if (endpoint.kind !== 'tunnel' || attributedTo === 'account') return;
        const words = detail ?? (status !== null && cause instanceof Error ? cause.message : null);
        const before = kept.get(id) ?? [];
        kept.delete(id);
        dropOldest(kept, OFFERS_MAX - 1);
        kept.set(id, [{ at: now(), requestId, status, reason: message, said: words }, ...before].slice(0, KEPT));
      },
    },
    of: ({ id }) => kept.get(id) ?? [],
  };
}

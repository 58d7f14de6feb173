import type { Offer } from '#catalog';
import { NewestOf } from './newest-of.ts';
import type { CallSink } from './observer.ts';

export interface ServiceFailure {
  /** Epoch milliseconds. */
  readonly at: number;
  /** The `x-request-id` that its service got. */
  readonly requestId: string;
  /** The HTTP status of the service; null if there was none. */
  readonly status: number | null;
  readonly reason: string;
  /** The first words of the service; null without any. */
  readonly replyText: string | null;
}

interface FailedAttemptAt extends ServiceFailure {
  /** Id of the call, and the account that made it: for the operator alone. */
  readonly call: string;
  readonly account: string;
  readonly provider: string;
  readonly service: string;
}

export interface LastFailures {
  readonly sink: CallSink;
  /** Of all offers, or of those of the provider with this id or name. The newest first. */
  all(provider: string | null): readonly FailedAttemptAt[];
  /** The newest failure of an offer as one text, with the id of its call. */
  newestOf(offer: Pick<Offer, 'id'>): { readonly reason: string | null; readonly call: string | null };
  /** The newest first. */
  failuresOf(offer: Pick<Offer, 'id'>): readonly KeptFailure[];
}

type KeptFailure = Omit<FailedAttemptAt, 'provider' | 'service'>;

/** Of an attempt without its texts, about. */
const ATTEMPT_BYTES = 200;

export function createLastFailures(now: () => number): LastFailures {
  const failures = new NewestOf<KeptFailure & { readonly offer: Offer }>(bytesOf);
  return {
    sink: {
      attemptFailed({ id: call, caller, requestId }, offer, { attributedTo, status, message, replyText }) {
        // What an account did is no matter of the provider.
        if (attributedTo === 'account') return;
        const newest = {
          at: now(),
          requestId,
          call,
          account: caller.account,
          status,
          reason: message,
          replyText,
          offer,
        };
        failures.set(offer.id, [newest, ...failures.entriesOf(offer.id)]);
      },
    },
    newestOf({ id }) {
      const [newest] = failures.entriesOf(id);
      if (newest === undefined) return { reason: null, call: null };
      return { reason: [newest.reason, newest.replyText].filter(Boolean).join(': '), call: newest.call };
    },
    failuresOf: ({ id }) => failures.entriesOf(id).map(({ offer: _offer, ...attempt }) => attempt),
    all: (filter) =>
      failures
        .all()
        .filter(({ offer: { provider } }) => filter === null || filter === provider.id || filter === provider.name)
        .map(({ offer: { provider, service }, ...attempt }) => ({ ...attempt, provider: provider.name, service }))
        .toSorted((one, other) => other.at - one.at),
  };
}

const bytesOf = ({ requestId, reason, replyText }: ServiceFailure): number =>
  ATTEMPT_BYTES + 2 * (requestId.length + reason.length + (replyText?.length ?? 0));

import type { Offer } from '#catalog';
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
  /** The newest first. */
  failuresOf(offer: Pick<Offer, 'id'>): readonly KeptFailure[];
}

type KeptFailure = Omit<FailedAttemptAt, 'provider' | 'service'>;

const KEPT = 20;
/** Of all offers together. The newest failures of any offer come last, and the first offers are forgotten. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Of an attempt without its texts, about. */
const ATTEMPT_BYTES = 200;

export function createLastFailures(now: () => number): LastFailures {
  const failures = new Map<string, { readonly offer: Offer; readonly attempts: readonly KeptFailure[] }>();
  let bytes = 0;
  const drop = (id: string): readonly KeptFailure[] => {
    const attempts = failures.get(id)?.attempts ?? [];
    failures.delete(id);
    for (const one of attempts) bytes -= bytesOf(one);
    return attempts;
  };
  return {
    sink: {
      attemptFailed({ id: call, caller, requestId }, offer, { attributedTo, status, message, replyText }) {
        // What an account did is no matter of the provider.
        if (attributedTo === 'account') return;
        const newest = { at: now(), requestId, call, account: caller.account, status, reason: message, replyText };
        const attempts = [newest, ...drop(offer.id)].slice(0, KEPT);
        failures.set(offer.id, { offer, attempts });
        for (const one of attempts) bytes += bytesOf(one);
        for (const oldest of failures.keys()) {
          if (bytes <= BYTES_MAX) break;
          drop(oldest);
        }
      },
    },
    failuresOf: ({ id }) => failures.get(id)?.attempts ?? [],
    all: (filter) =>
      [...failures.values()]
        .filter(({ offer: { provider } }) => filter === null || filter === provider.id || filter === provider.name)
        .flatMap(({ offer: { provider, service }, attempts }) =>
          attempts.map((attempt) => ({ ...attempt, provider: provider.name, service })),
        )
        .toSorted((one, other) => other.at - one.at),
  };
}

const bytesOf = ({ requestId, reason, replyText }: ServiceFailure): number =>
  ATTEMPT_BYTES + 2 * (requestId.length + reason.length + (replyText?.length ?? 0));

import type { Offer } from '#catalog';
import type { CallSink } from './observer.ts';

/** An attempt that failed, for its provider and for the operator. */
export interface ServiceFailure {
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

/** An attempt that failed, and where. */
interface FailedAttemptAt extends ServiceFailure {
  /** The name of the provider. */
  readonly provider: string;
  readonly service: string;
}

/** The newest failed attempts of each offer at this gateway. */
export interface LastFailures {
  readonly sink: CallSink;
  /** Of all offers, or of those of the provider with this id or name. The newest first. */
  all(provider: string | null): readonly FailedAttemptAt[];
  /** The newest first. */
  of(offer: Pick<Offer, 'id'>): readonly ServiceFailure[];
}

const KEPT = 20;
/** Of all offers together. The newest failures of any offer come last, and the first offers are forgotten. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Of an attempt without its texts, about. */
const ATTEMPT_BYTES = 200;

export function createLastFailures(now: () => number): LastFailures {
  const kept = new Map<string, { readonly offer: Offer; readonly attempts: readonly ServiceFailure[] }>();
  let bytes = 0;
  const drop = (id: string): readonly ServiceFailure[] => {
    const attempts = kept.get(id)?.attempts ?? [];
    kept.delete(id);
    for (const one of attempts) bytes -= bytesOf(one);
    return attempts;
  };
  return {
    sink: {
      attemptFailed({ requestId }, offer, { attributedTo, status, message, replyText: said }) {
        // What an account did is no matter of the provider.
        if (attributedTo === 'account') return;
        const { id } = offer;
        const newest = { at: now(), requestId, status, reason: message, said };
        const attempts = [newest, ...drop(id)].slice(0, KEPT);
        kept.set(id, { offer, attempts });
        for (const one of attempts) bytes += bytesOf(one);
        for (const oldest of kept.keys()) {
          if (bytes <= BYTES_MAX) break;
          drop(oldest);
        }
      },
    },
    of: ({ id }) => kept.get(id)?.attempts ?? [],
    all: (asked) =>
      [...kept.values()]
        .filter(({ offer: { provider } }) => asked === null || asked === provider.id || asked === provider.name)
        .flatMap(({ offer: { provider, service }, attempts }) =>
          attempts.map((attempt) => ({ ...attempt, provider: provider.name, service })),
        )
        .toSorted((one, other) => other.at - one.at),
  };
}

const bytesOf = ({ requestId, reason, said }: ServiceFailure): number =>
  ATTEMPT_BYTES + 2 * (requestId.length + reason.length + (said?.length ?? 0));

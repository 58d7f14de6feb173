import type { Resolution } from '#billing';
import type { Call, Offer, ProviderFlag, UpstreamFailure } from '../call.ts';

/** How a call ended. */
export interface CallOutcome {
  /** What billing did with the lock; null when there never was one (it was refused, or the ledger was not reachable). */
  readonly resolution: Resolution | null;
  /** What ended the call; null when it succeeded. */
  readonly error: unknown;
  /** The offer that served, or the last one tried; null when none was. */
  readonly offer: Offer | null;
  /** Requests sent upstream. */
  readonly attempts: number;
  /** From the call's start to the first byte of its reply; null when there was none. */
  readonly firstByteMs: number | null;
  readonly durationMs: number;
}

/** What is told about calls to a log, to metrics, to a tracer. Methods return at once and never throw. */
export interface CallSink {
  readonly started?: (call: Call) => void;
  readonly attemptFailed?: (call: Call, offer: Offer, failure: UpstreamFailure) => void;
  readonly flagged?: (call: Call, offer: Offer, flags: readonly ProviderFlag[]) => void;
  readonly finished?: (call: Call, outcome: CallOutcome) => void;
  /** Headers that carry the trace to the provider; null when the call has no trace. */
  readonly upstreamHeaders?: (call: Call) => Readonly<Record<string, string>> | null;
}

/**
 * What the pipeline tells: `started` once; then of each attempt `firstByte`, `attemptFailed` or `flagged`;
 * at last `resolved` (billing is done with the lock, also after the client is gone) or `failed` (there was no lock).
 * Calls are told apart by id, so that a call which is run again with fewer candidates stays one call.
 */
export interface CallObserver {
  started(call: Call): void;
  firstByte(call: Call): void;
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure): void;
  flagged(call: Call, offer: Offer, flags: readonly ProviderFlag[]): void;
  resolved(call: Call, resolution: Resolution): void;
  /** Without effect on a call that was resolved. */
  failed(call: Call, error: unknown): void;
  upstreamHeaders(call: Call): Readonly<Record<string, string>> | null;
  /** Calls that have started and not ended. */
  inFlight(): number;
}

interface Progress {
  firstByteMs: number | null;
  failedAttempts: number;
  lastTried: Offer | null;
}

/** One observer over several sinks. `now` is in milliseconds and must be the clock of `call.startedAt`. */
export function createCallObserver(sinks: readonly CallSink[], { now }: { readonly now: () => number }): CallObserver {
  const open = new Map<string, Progress>();

  const finish = (call: Call, resolution: Resolution | null, error: unknown) => {
    const progress = open.get(call.id);
    if (!progress) return;
    open.delete(call.id);
    const end = resolution?.end;
    const served = end ? call.candidates.find(({ offer }) => offer.price.id === end.price && offer.provider.id === end.provider)?.offer : undefined;
    const outcome: CallOutcome = {
      resolution,
      error,
      offer: served ?? progress.lastTried,
      attempts: progress.failedAttempts + (served ? 1 : 0),
      firstByteMs: progress.firstByteMs,
      durationMs: now() - call.startedAt,
    };
    for (const sink of sinks) sink.finished?.(call, outcome);
  };

  return {
    inFlight: () => open.size,
    started(call) {
      open.set(call.id, { firstByteMs: null, failedAttempts: 0, lastTried: null });
      for (const sink of sinks) sink.started?.(call);
    },
    firstByte(call) {
      const progress = open.get(call.id);
      if (progress) progress.firstByteMs ??= now() - call.startedAt;
    },
    attemptFailed(call, offer, failure) {
      const progress = open.get(call.id);
      if (progress) {
        progress.failedAttempts += 1;
        progress.lastTried = offer;
      }
      for (const sink of sinks) sink.attemptFailed?.(call, offer, failure);
    },
    flagged(call, offer, flags) {
      for (const sink of sinks) sink.flagged?.(call, offer, flags);
    },
    resolved: (call, resolution) => finish(call, resolution, resolution.error),
    failed: (call, error) => finish(call, null, error),
    upstreamHeaders(call) {
      for (const sink of sinks) {
        const headers = sink.upstreamHeaders?.(call);
        if (headers) return headers;
      }
      return null;
    },
  };
}

import type { UpstreamFailure } from '#wire';
import type { EndFrame, Resolution } from '#billing';
import type { Call, Offer, ProviderFlag, CallObserver } from '#gateway';
import { answerErrorOf } from './answer-error.ts';
import { createKnownOperations } from './known-operations.ts';

/** The time of one attempt, in milliseconds. It began `beganMs` after the start of its call. */
export interface AttemptTime {
  readonly beganMs: number;
  readonly durationMs: number;
}

/** How a call ended. */
export interface CallOutcome {
  /**
   * The end of the call's lock; null for a call without a lock: it is free, it was refused, or the ledger was
   * unavailable.
   */
  readonly resolution: Resolution | null;
  /** The end of the reply; null if there was no reply or if it broke. */
  readonly end: EndFrame | null;
  /** The error that ended the call; null if it was answered. */
  readonly error: unknown;
  /** The `error.type` of an answer that reports a failure, see answerErrorOf; null for other answers. */
  readonly answerError: string | null;
  /** The client left before the end. */
  readonly clientGone: boolean;
  /** The call's operation if the provider is known to have it; null if the consumer may have invented it. */
  readonly operation: string | null;
  /** The offer that served the call, or the last one that was tried; null if no offer was tried. */
  readonly offer: Offer | null;
  /** Number of attempts. */
  readonly attempts: number;
  /** The time of the attempt that was answered; null if no attempt was answered. */
  readonly served: AttemptTime | null;
  /** Milliseconds from the call's start to the first byte of its reply; null without a reply. */
  readonly firstByteMs: number | null;
  readonly durationMs: number;
}

/** Receives events of calls: a log, metrics or a tracer. Methods return at once and never throw. */
export interface CallSink {
  readonly started?: (call: Call) => void;
  readonly attemptStarted?: (call: Call, offer: Offer, beganMs: number) => void;
  readonly attemptFailed?: (call: Call, offer: Offer, failure: UpstreamFailure, time: AttemptTime) => void;
  readonly flagged?: (call: Call, offer: Offer, flags: readonly ProviderFlag[]) => void;
  readonly finished?: (call: Call, outcome: CallOutcome) => void;
  /** Headers with the trace for the provider; null if the call has no trace. */
  readonly upstreamHeaders?: (call: Call) => Readonly<Record<string, string>> | null;
}

interface Progress {
  firstByteMs: number | null;
  failedAttempts: number;
  lastTried: Offer | null;
  /** Milliseconds from the start of the call to the start of the current attempt; 0 before the first. */
  attemptBeganMs: number;
  isOver: boolean;
}

/**
 * Stored on the call object itself, so copies with fewer candidates have it too. A map of all calls would cost several
 * times as much.
 */
const PROGRESS = Symbol('progress');

type Observed = Call & { [PROGRESS]?: Progress };

const progressOf = (call: Call): Progress | null => {
  const progress = (call as Observed)[PROGRESS];
  return progress === undefined || progress.isOver ? null : progress;
};

interface CallObserverOptions {
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
  /**
   * Whether the server of an offer is known to have an operation, without a request to it. Default: no operation is
   * known.
   */
  readonly hasOperation?: (offer: Offer, operation: string) => boolean;
}

/** One observer that passes its events to several sinks. */
export function createCallObserver(
  sinks: readonly CallSink[],
  { now, hasOperation }: CallObserverOptions,
): CallObserver {
  let inFlight = 0;
  const operations = createKnownOperations(hasOperation);

  const finish = (call: Call, resolution: Resolution | null, error: unknown, end: EndFrame | null) => {
    const progress = progressOf(call);
    if (!progress) return;
    progress.isOver = true;
    inFlight -= 1;
    const served = end
      ? call.candidates.find(({ offer, price }) => price.id === end.price && offer.provider.id === end.provider)?.offer
      : undefined;
    const offer = served ?? progress.lastTried;
    const answerError = answerErrorOf(call, end);
    const cancelled = end?.detail['finishReason'] === 'cancelled';
    if (call.operation !== null && served && answerError === null && !cancelled)
      operations.learn(served, call.operation);
    const durationMs = now() - call.begunAt;
    const called = offer ?? call.candidates[0]?.offer;
    const outcome: CallOutcome = {
      resolution,
      end,
      error,
      answerError,
      // A free call has no resolution. Its client left if the call was cut or its reader stopped early.
      clientGone: resolution?.clientGone ?? (call.free !== null && error === null && (cancelled || end === null)),
      operation: called ? operations.nameOf(call, called) : null,
      offer,
      attempts: progress.failedAttempts + (served ? 1 : 0),
      served: served && end ? servedTime(progress, end, durationMs) : null,
      firstByteMs: progress.firstByteMs,
      durationMs,
    };
    for (const sink of sinks) sink.finished?.(call, outcome);
  };

  return {
    inFlight: () => inFlight,
    started(call) {
      const progress = { firstByteMs: null, failedAttempts: 0, lastTried: null, attemptBeganMs: 0, isOver: false };
      (call as Observed)[PROGRESS] = progress;
      inFlight += 1;
      for (const sink of sinks) sink.started?.(call);
    },
    attemptStarted(call, offer, at) {
      const progress = progressOf(call);
      if (!progress) return;
      progress.attemptBeganMs = at - call.begunAt;
      for (const sink of sinks) sink.attemptStarted?.(call, offer, progress.attemptBeganMs);
    },
    firstByte(call, at) {
      const progress = progressOf(call);
      if (progress) progress.firstByteMs ??= at - call.begunAt;
    },
    attemptFailed(call, offer, failure) {
      const progress = progressOf(call);
      if (progress) {
        progress.failedAttempts += 1;
        progress.lastTried = offer;
      }
      const beganMs = progress?.attemptBeganMs ?? 0;
      const time = { beganMs, durationMs: now() - call.begunAt - beganMs };
      for (const sink of sinks) sink.attemptFailed?.(call, offer, failure, time);
    },
    flagged(call, offer, flags) {
      for (const sink of sinks) sink.flagged?.(call, offer, flags);
    },
    resolved: (call, resolution) => finish(call, resolution, resolution.error, resolution.end),
    failed: (call, error, end = null) => finish(call, null, error, end),
    upstreamHeaders(call) {
      for (const sink of sinks) {
        const headers = sink.upstreamHeaders?.(call);
        if (headers) return headers;
      }
      return null;
    },
  };
}

/** The time of the attempt up to the end of the reply. The settlement comes after it and does not count. */
function servedTime({ attemptBeganMs: beganMs }: Progress, { detail }: EndFrame, callMs: number): AttemptTime {
  const endMs = detail['durationMs'];
  return { beganMs, durationMs: Math.max(0, (typeof endMs === 'number' ? endMs : callMs) - beganMs) };
}

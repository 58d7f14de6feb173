import type { UpstreamFailure } from '#wire';
import type { LockResolution } from '#billing';
import type { EndFrame, Usage } from '#billing/amounts';
import { answerErrorOf, OTHER_ERROR } from '#billing/call-end';
import { type Call, type CallObserver, errorOfCut } from '#call';
import type { NamedFlags } from '#call/flags';
import type { Offer } from '#catalog';
import { HTTP_ERRORS, toGatewayError } from '#http';
import { createRunningAttempts, type RunningAttempt, type RunningAttempts } from './running-attempts.ts';

/** The time of one attempt, in milliseconds. It began `beganMs` after the start of its call. */
export interface AttemptTime {
  readonly beganMs: number;
  readonly durationMs: number;
}

export interface CallOutcome {
  /**
   * The end of the call's lock; null for a call without a lock: it is free, it was refused, or the ledger was
   * unavailable.
   */
  readonly resolution: LockResolution | null;
  /** The end of the reply; null if there was no reply or if it broke. */
  readonly end: EndFrame | null;
  /** The error that ended the call; null if it was answered. */
  readonly error: unknown;
  /** The `error.type` of an answer that reports a failure, see answerErrorOf; null for other answers. */
  readonly answerError: string | null;
  readonly clientGone: boolean;
  /** The call's operation if the provider is known to have it; null if the consumer may have invented it. */
  readonly operation: string | null;
  /** The offer that served the call, or the last one that was tried; null if no offer was tried. */
  readonly offer: Offer | null;
  readonly attempts: number;
  /** The time of the attempt that was answered; null if no attempt was answered. */
  readonly served: AttemptTime | null;
  /**
   * The attempt that ran until the end, at `offer`, with its error type; null if the last one had failed before, and
   * for an answer that came in a provider's batch.
   */
  readonly lastAttempt: (AttemptTime & { readonly errorType: string | null }) | null;
  /** Milliseconds from the call's start to the first byte of its last attempt; null without one. */
  readonly firstByteMs: number | null;
  readonly durationMs: number;
}

/** Error code and status in logs and metrics if the client left before the answer. Proxies use the same status. */
const CLIENT_GONE = ['client_gone', 499] as const;

/**
 * The error code of an outcome and its HTTP status; `[null, 200]` for success. A complete answer of a provider has 200,
 * even if it reports an error. A stream that ended with an error after it had begun has the status of this error.
 */
export function statusOf({
  error,
  answerError,
  clientGone,
  end,
  resolution,
}: Pick<CallOutcome, 'error' | 'answerError' | 'clientGone' | 'end' | 'resolution'>): readonly [
  code: string | null,
  status: number,
] {
  if (error !== null && error !== undefined) {
    if (clientGone) return CLIENT_GONE;
    const { code } = toGatewayError(error);
    return [code, HTTP_ERRORS[code].status];
  }
  const cut = end?.cut;
  if (!cut) return [answerError, 200];
  // A client that cancels is not told of an error; one that left gets nothing. A free call may end only so: a client
  // listens until it leaves.
  if (cut.reason === 'cancelled') return clientGone && resolution !== null ? CLIENT_GONE : [null, 200];
  return [cut.code, HTTP_ERRORS[cut.code].status];
}

/** The error of an outcome in words, as its client gets it; null for an outcome without one. */
export function reasonOf({ error, end, resolution }: CallOutcome): string | null {
  if (error !== null && error !== undefined) return error instanceof Error ? error.message : String(error);
  if (!end?.cut) return null;
  if (end.cut.reason === 'cancelled') return end.cut.message;
  return errorOfCut(end.cut, { providerName: end.providerName, charged: resolution?.settlement.charged ?? 0n }).message;
}

/** Receives events of calls: a log, metrics or a tracer. Methods return at once and never throw. */
export interface CallSink {
  readonly started?: (call: Call) => void;
  readonly attemptStarted?: (call: Call, offer: Offer, beganMs: number) => void;
  readonly attemptFailed?: (call: Call, offer: Offer, failure: UpstreamFailure, time: AttemptTime) => void;
  readonly flagged?: (call: Call, offer: Offer, flags: NamedFlags, usage: Usage | null) => void;
  readonly finished?: (call: Call, outcome: CallOutcome) => void;
  /** Headers with the trace for the provider; null if the call has no trace. */
  readonly upstreamHeaders?: (call: Call) => Readonly<Record<string, string>> | null;
}

interface CallProgress extends RunningAttempt {
  firstByteMs: number | null;
  attempts: number;
  lastTried: Offer | null;
  /** Milliseconds from the start of the call to the start of the current attempt; 0 before the first. */
  attemptBeganMs: number;
  /** Milliseconds from the start of the call to the moment from which its attempts count their times. */
  originMs: number;
  /** An attempt runs. */
  isTrying: boolean;
  isOver: boolean;
}

/**
 * Stored on the call object itself, so copies with fewer candidates have it too. A map of all calls would cost several
 * times as much.
 */
const PROGRESS = Symbol('progress');

type Observed = Call & { [PROGRESS]?: CallProgress };

const progressOf = (call: Call): CallProgress | null => {
  const progress = (call as Observed)[PROGRESS];
  return progress === undefined || progress.isOver ? null : progress;
};

interface CallObserverOptions {
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
  /** Keeps the attempts that run. Default: nobody asks for them. */
  readonly running?: RunningAttempts;
}

export interface GatewayObserver extends CallObserver {
  /** `listed`: whether the server of an offer lists an operation, without a request to it. Until then, none does. */
  readOperations(listed: (offer: Offer, operation: string) => boolean): void;
}

/** One observer that passes its events to several sinks. */
export function createCallObserver(
  sinks: readonly CallSink[],
  { now, running = createRunningAttempts() }: CallObserverOptions,
): GatewayObserver {
  let inFlight = 0;
  const operations = createKnownOperations();

  const finish = (call: Call, resolution: LockResolution | null, error: unknown, end: EndFrame | null) => {
    const progress = progressOf(call);
    if (!progress) return;
    progress.isOver = true;
    inFlight -= 1;
    running.end(progress);
    const served = end
      ? call.candidates.find(({ offer, price }) => price.id === end.price && offer.provider.id === end.provider)?.offer
      : undefined;
    const offer = served ?? progress.lastTried;
    const answerError = answerErrorOf(call.primitive, end?.detail['finishReason']);
    const cancelled = end?.detail['finishReason'] === 'cancelled';
    if (call.operation !== null && served && answerError === null && !cancelled)
      operations.learn(served, call.operation);
    const durationMs = now() - call.begunAt;
    const lastTime = progress.isTrying ? timeOfLast(progress, end, durationMs) : null;
    // A free call has no resolution. Its client left if the call was cut or its reader stopped early.
    const clientGone = resolution?.clientGone ?? (call.free !== null && error === null && (cancelled || end === null));
    const [code] = statusOf({ error, answerError, clientGone, end, resolution });
    const called = offer ?? call.candidates[0]?.offer;
    const outcome: CallOutcome = {
      resolution,
      end,
      error,
      answerError,
      clientGone,
      operation: called ? operations.nameOf(call, called) : null,
      offer,
      // An answer that came in a provider's batch was not waited for: no attempt began.
      attempts: Math.max(progress.attempts, served ? 1 : 0),
      served: end === null ? null : lastTime,
      lastAttempt: lastTime && { ...lastTime, errorType: end === null ? code : (end.cut?.reason ?? answerError) },
      firstByteMs: progress.firstByteMs,
      durationMs,
    };
    for (const sink of sinks) sink.finished?.(call, outcome);
  };

  return {
    inFlight: () => inFlight,
    readOperations: operations.readFrom,
    started(call) {
      (call as Observed)[PROGRESS] = {
        firstByteMs: null,
        attempts: 0,
        lastTried: null,
        attemptBeganMs: 0,
        originMs: 0,
        isTrying: false,
        isOver: false,
        place: null,
        waitsSince: 0,
        isWaiting: false,
        older: null,
        newer: null,
      };
      inFlight += 1;
      for (const sink of sinks) sink.started?.(call);
    },
    attemptStarted(call, offer, at) {
      const progress = progressOf(call);
      if (!progress) return;
      progress.attempts += 1;
      progress.attemptBeganMs = at - call.begunAt;
      progress.firstByteMs = null;
      progress.lastTried = offer;
      progress.isTrying = true;
      // A free call may be a stream on which a client listens, which waits for as long as it likes.
      if (call.free === null) running.begin(progress, offer, at);
      for (const sink of sinks) sink.attemptStarted?.(call, offer, progress.attemptBeganMs);
    },
    idle(call) {
      const progress = progressOf(call);
      if (progress) running.stopWaiting(progress);
    },
    workBegins(call, at) {
      const progress = progressOf(call);
      if (!progress) return;
      progress.attemptBeganMs = progress.originMs = at - call.begunAt;
      running.wait(progress, at);
    },
    firstByte(call, at) {
      const progress = progressOf(call);
      if (!progress) return;
      progress.firstByteMs ??= at - call.begunAt;
      running.stopWaiting(progress);
    },
    attemptFailed(call, offer, failure) {
      const progress = progressOf(call);
      if (progress) {
        progress.lastTried = offer;
        progress.isTrying = false;
        running.end(progress);
      }
      const beganMs = progress?.attemptBeganMs ?? 0;
      const time = { beganMs, durationMs: now() - call.begunAt - beganMs };
      for (const sink of sinks) sink.attemptFailed?.(call, offer, failure, time);
    },
    flagged(call, offer, flags, usage) {
      for (const sink of sinks) sink.flagged?.(call, offer, flags, usage);
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
function timeOfLast(
  { attemptBeganMs: beganMs, originMs }: CallProgress,
  end: EndFrame | null,
  callMs: number,
): AttemptTime {
  const toldMs = end?.detail['durationMs'];
  const endMs = typeof toldMs === 'number' ? originMs + toldMs : callMs;
  return { beganMs, durationMs: Math.max(0, endMs - beganMs) };
}

/**
 * Maximum number of operations in memory for one offer, and of offers with operations. Calls of other operations are
 * counted without their name.
 */
const OPERATIONS_MAX = 256;
const OFFERS_MAX = 2000;
/** The maximum length that MCP recommends for the name of a tool. */
const NAME_LENGTH_MAX = 128;

/**
 * The names of operations (tools) that a provider really has. Consumers can invent other names. Counting only known
 * names limits the number of metrics.
 */
interface KnownOperations {
  readFrom(listed: (offer: Offer, operation: string) => boolean): void;
  learn(offer: Offer, operation: string): void;
  /** The call's operation; null if it has none or if only the consumer has used the name. */
  nameOf(call: Pick<Call, 'operation'>, offer: Offer): string | null;
}

/**
 * A name is known if `listed` returns true for it, if it has its own price at the offer, or if the server has once
 * answered it without an error.
 */
function createKnownOperations(): KnownOperations {
  const known = new Map<string, Set<string>>();
  let listed: (offer: Offer, operation: string) => boolean = () => false;
  return {
    readFrom(judge) {
      listed = judge;
    },
    learn(offer, operation) {
      if (operation.length > NAME_LENGTH_MAX) return;
      let names = known.get(offer.id);
      if (!names) {
        if (known.size >= OFFERS_MAX) return;
        known.set(offer.id, (names = new Set()));
      }
      if (names.size < OPERATIONS_MAX) names.add(operation);
    },
    nameOf({ operation }, offer) {
      if (operation === null) return null;
      if (known.get(offer.id)?.has(operation) || Object.hasOwn(offer.variants, operation)) return operation;
      return operation.length <= NAME_LENGTH_MAX && listed(offer, operation) ? operation : null;
    },
  };
}

const USUAL_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]);

/**
 * The error type of a failed attempt, with few possible values: the status of an error, or what happened to the
 * connection or to a reply that began well.
 */
export function labelOfFailure({
  status,
  unsent,
  timedOut,
}: Pick<UpstreamFailure, 'status' | 'unsent' | 'timedOut'>): string {
  if (status === null || status < 400) return timedOut ? 'timeout' : unsent ? 'unreachable' : 'broken';
  return USUAL_STATUSES.has(status) ? String(status) : OTHER_ERROR;
}

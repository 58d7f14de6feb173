import { type Dialect, type HeldBody, toGatewayError } from '#http';
import { type GatewayError, ofGeneration } from '#errors';
import { after, isPromise, NEVER_ABORTED } from '#wire';
import type { Frame, CancelSignal, MicroUsd, ReplyPiece } from '#billing';
import type { Caller } from '#accounts';
import {
  asksForMoney,
  PaymentNeeded,
  NO_PAYMENTS,
  type PaidResource,
  type PaymentRequired,
  type Payments,
} from '#payments';
import { type Call, type CallRequest, type HeldByCall, newCallId } from './call.ts';
import {
  type Beginning,
  type GivenReply,
  type Idempotency,
  idempotencyError,
  type StoredReply,
  storedNames,
} from './idempotency.ts';
import { leastOf } from './lock-payments.ts';
import type { Pipeline } from './pipeline.ts';
import { isQuoted, type Quotes } from './quotes.ts';

/** The call or the run that answers a request. */
export interface StartedCall<R = unknown, D extends ReplyPiece = ReplyPiece> {
  /** Id of the call, or of the run's lock: the generation id. */
  readonly id: string;
  /** The call; null for a run. */
  readonly call: Call | null;
  readonly frames: AsyncIterable<Frame<R, D>>;
}

export interface StartedProviderCall<R = unknown, D extends ReplyPiece = ReplyPiece> extends StartedCall<R, D> {
  readonly call: Call<R, D>;
}

/** An answer that is written. If `end` is present, the end of the answer is still missing. */
export interface ResponseRecord {
  /** The reply for a repeat of the request; null if a repeat runs again. Called only if the reply is to be kept. */
  storedReply(): GivenReply | null;
  /** Something was charged, or will be when the work ends. A repeat then never runs again. */
  readonly charged: boolean;
  /**
   * Writes the end of the answer. Called after the reply is kept, so a client that has seen the end can repeat the
   * request.
   */
  end?(): void;
}

/** How a repeat of a request is recognised. */
export interface RepeatKey {
  /** Unique within what the caller shares with others, see storedNames and requestKey. */
  readonly key: string;
  /** Digest of the request's content. The same key with another digest is a conflict. */
  readonly bodyHash: string;
  /**
   * If the kept reply is from an earlier round of this request: the key of the next round. null: send the kept reply.
   */
  nextKey?(reply: StoredReply): Promise<string | null>;
  /** Answers a request whose key is in use without a stored reply, or throws. Default: throws idempotencyError. */
  takeKey?(takenKey: TakenKey): Promise<void>;
}

export type TakenKey = Exclude<Beginning, { kind: 'new' | 'replay' }>;

/** A call that was refused because money is missing. */
export interface UnpaidCall {
  readonly error: GatewayError;
  /** A payment with the request would help. False if a limit is too low. */
  readonly payable: boolean;
  /** The least amount to pay, in micro-USD; if a limit is too low, the lock of the cheapest offer. */
  readonly amount: MicroUsd;
  /** The ways to pay; empty if `payable` is false. */
  terms(resource: PaidResource): Promise<PaymentRequired>;
}

/** One request of a client, as its route passes it to `handlePaidRequest`. */
export interface PendingRequest<O extends StartedCall> {
  readonly caller: Caller;
  /** How a repeat is recognised; null if a repeat runs again. For callers without an account, no reply is kept. */
  readonly repeats: RepeatKey | null;
  /**
   * The dialect of the request's address. A repeat in another one is a conflict, because a kept reply has the words of
   * its own. Default `own`.
   */
  readonly dialect?: Dialect;
  /** The counted memory of the request's body, which the call uses to its end; null or absent if it is not counted. */
  readonly body?: HeldBody | null;
  /** Aborts when the client leaves. A request whose reply is to be kept still runs to its end. */
  readonly gone: CancelSignal;
  /** Prepares the call under `callId`. Throws or rejects with GatewayError. */
  open(callId: string, gone: CancelSignal): O | Promise<O>;
  /**
   * Writes the frames to the client. `isKept`: the answer is to be kept, so it is written to its end even if the client
   * does not read it. Resolves with null if the client left or the run ended without a reply. Throws the error of the
   * call while the answer can still be an error.
   */
  write(startedCall: O, isKept: boolean): Promise<ResponseRecord | null>;
  replay(reply: StoredReply): void | Promise<void>;
  /** Answers a call that was refused because money is missing, or throws its error. */
  refuse(refusal: UnpaidCall): Promise<ResponseRecord | null>;
  /** Whether an error already has the form of the route's protocol and is passed on unchanged; default never. */
  isOwnError?(error: unknown): boolean;
}

export interface PaidRequestDeps {
  readonly idempotency: Idempotency;
  readonly payments: Payments;
  /**
   * Gives a quote for each call whose cost is known beforehand, so that the offered terms are binding. Default: terms
   * are not binding.
   */
  readonly quotes?: Quotes;
}

/**
 * Answers one request: sends the kept reply, or opens the call, passes its frames to the route's writer and keeps the
 * reply. Every route runs its billed requests through it. Throws errors from before the first byte of the answer, and
 * errors of `write`. Errors of a billed call name its generation.
 */
export function handlePaidRequest<O extends StartedCall>(
  deps: PaidRequestDeps,
  pending: PendingRequest<O>,
): Promise<void> {
  const { caller, repeats } = pending;
  if (repeats !== null && !caller.anonymous) return runOrRepeat(deps, pending, repeats);
  return run(deps, pending, caller.run?.call ?? newCallId(), pending.gone, false).then(endRecord);
}

async function run<O extends StartedCall>(
  deps: PaidRequestDeps,
  pending: PendingRequest<O>,
  callId: string,
  gone: CancelSignal,
  isKept: boolean,
): Promise<ResponseRecord | null> {
  let startedCall: O | null = null;
  const giveBodyBack = pending.body?.keep();
  let held: HeldFrames | null = null;
  try {
    const opening = pending.open(callId, gone);
    startedCall = isPromise(opening) ? await opening : opening;
    if (isKept && startedCall.call) startedCall.call.isRepeatable = true;
    const memory = startedCall.call?.memory;
    if (giveBodyBack || memory) {
      held = new HeldFrames(() => {
        giveBodyBack?.();
        memory?.release();
      });
      startedCall = { ...startedCall, frames: held.metered(startedCall.frames) };
    }
    return await pending.write(startedCall, isKept);
  } catch (error) {
    const refusal = refusalOf(deps, pending.caller, startedCall?.call ?? null, error);
    if (refusal !== null) return await pending.refuse(refusal);
    // A free call has no record that could be looked up.
    if (startedCall === null || startedCall.call?.free || pending.isOwnError?.(error)) throw error;
    throw ofGeneration(toGatewayError(error), startedCall.id);
  } finally {
    if (held === null) giveBodyBack?.();
    else held.written();
  }
}

async function runKept<O extends StartedCall>(
  deps: PaidRequestDeps,
  pending: PendingRequest<O>,
  use: Parameters<Idempotency['begin']>[0],
): Promise<void> {
  const { idempotency } = deps;
  let written: ResponseRecord | null;
  try {
    written = await run(deps, pending, use.callId, NEVER_ABORTED, true);
  } catch (error) {
    await idempotency.abandon(use);
    throw error;
  }
  try {
    const reply = written?.storedReply() ?? null;
    if (reply === null) await idempotency.abandon(use);
    else await idempotency.finish(use, reply, written!.charged);
  } finally {
    written?.end?.();
  }
}

async function runOrRepeat<O extends StartedCall>(
  deps: PaidRequestDeps,
  pending: PendingRequest<O>,
  repeats: RepeatKey,
): Promise<void> {
  const { caller } = pending;
  const { account } = caller;
  const bodyHash = pending.dialect === 'openai' ? `openai ${repeats.bodyHash}` : repeats.bodyHash;
  const access = caller.key?.access ?? null;
  for (let { key } = repeats; ;) {
    const use = { account, ...storedNames(caller, key), callId: newCallId(), bodyHash, access };
    const beginning = await deps.idempotency.begin(use);
    if (beginning.kind === 'new') return runKept(deps, pending, use);
    if (beginning.kind !== 'replay') {
      if (repeats.takeKey) return repeats.takeKey(beginning);
      throw idempotencyError(beginning.kind);
    }
    const next = (await repeats.nextKey?.(beginning)) ?? null;
    if (next === null) return pending.replay(beginning);
    key = next;
  }
}

const endRecord = (written: ResponseRecord | null): void => written?.end?.();

/** null for an error that a payment would not solve. */
function refusalOf(
  { payments, quotes }: PaidRequestDeps,
  caller: Caller,
  call: Call | null,
  error: unknown,
): UnpaidCall | null {
  const payable = error instanceof PaymentNeeded;
  if (!payable && (call === null || call.free !== null || !asksForMoney(error))) return null;
  const amount = payable ? error.missing : leastOf(call!);
  const known = toGatewayError(error);
  return {
    error: known,
    payable,
    amount,
    async terms(resource) {
      const required = await (payable ? payments : NO_PAYMENTS).required({
        caller,
        error: known.message,
        resource,
        amount,
      });
      return call?.priced && quotes && required.accepts.length > 0 ? withQuote(required, call, quotes) : required;
    },
  };
}

/**
 * Adds the id of a quote to the terms, so that they hold until the quote expires, even if the price rises. Clients send
 * `extra` back with their payment.
 */
async function withQuote(required: PaymentRequired, call: Call, quotes: Quotes): Promise<PaymentRequired> {
  const least = leastOf(call) - call.lendable;
  const cheapest = call.candidates.filter(({ estimate, offer }) => estimate === least && isQuoted(offer));
  if (cheapest.length === 0) return required;
  // If no quote can be given, the terms are sent without one.
  const id = call.quote ?? (await quotes.give(call, cheapest).catch(() => null))?.id;
  if (id === undefined) return required;
  const accepts = required.accepts.map((way) => ({
    ...way,
    extra: { ...(way['extra'] as object | undefined), quoteId: id },
  }));
  return { ...required, accepts };
}

/**
 * Prepares one call and begins to run it. Routes use it as `open` for requests that one call answers. Throws or rejects
 * with GatewayError.
 */
export function openCall<R, D extends ReplyPiece>(
  pipeline: Pick<Pipeline, 'prepare' | 'run'>,
  request: CallRequest<R, D>,
  callId: string,
  gone: CancelSignal,
): StartedProviderCall<R, D> | Promise<StartedProviderCall<R, D>> {
  const run = (call: Call<R, D>) => ({ id: call.id, call, frames: pipeline.run(call, gone) });
  const { memory } = request;
  if (memory) return openHolding(pipeline, request, callId, memory).then(run);
  return after(pipeline.prepare(request, callId), run);
}

/** Prepares a call whose memory is given back if it does not begin. */
async function openHolding<R, D extends ReplyPiece>(
  pipeline: Pick<Pipeline, 'prepare'>,
  request: CallRequest<R, D>,
  callId: string,
  memory: HeldByCall,
): Promise<Call<R, D>> {
  try {
    return await pipeline.prepare(request, callId);
  } catch (error) {
    memory.release();
    throw error;
  }
}

/**
 * The frames of a call that holds the body of its request. The body is given back when the frames have ended, which may
 * be long after the answer: if the client leaves, the call still goes on.
 */
class HeldFrames implements AsyncIterator<Frame> {
  readonly #giveBack: () => void;
  #frames: AsyncIterator<Frame> | null = null;
  #begun = false;

  constructor(giveBack: () => void) {
    this.#giveBack = giveBack;
  }

  metered(frames: AsyncIterable<Frame>): AsyncIterable<Frame> {
    return {
      [Symbol.asyncIterator]: () => {
        this.#begun = true;
        this.#frames = frames[Symbol.asyncIterator]();
        return this;
      },
    };
  }

  /**
   * The answer is written, or will not be. Frames that nobody has begun to read never end, so their body is given back
   * here.
   */
  written(): void {
    if (!this.#begun) this.#giveBack();
  }

  async next(): Promise<IteratorResult<Frame>> {
    try {
      const step = await this.#frames!.next();
      if (step.done) this.#giveBack();
      return step;
    } catch (error) {
      this.#giveBack();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Frame>> {
    try {
      await this.#frames!.return?.();
      return { done: true, value: undefined };
    } finally {
      this.#giveBack();
    }
  }
}

import { isObject, UpstreamFailure } from '#wire';
import {
  completionTokens,
  CuttableCancelSource,
  type Frame,
  type ReplyPiece,
  type SettledFrame,
} from '#billing/amounts';
import {
  type Call,
  type CallRequest,
  type Cut,
  cutReply,
  type Pipeline,
  type ProviderAdapter,
  type ReplyEnd,
  type Send,
} from '#call';
import type { Offer } from '#catalog';
import { boundsAt, type Growth, NO_GROWTH, type ResponseBounds } from './conversation-size.ts';
import { type Delivered, endOfResponse, endUnfinished, type ResponseResult } from './response-end.ts';

type Settled = SettledFrame<ResponseResult>;
type ResponseStep = IteratorResult<ReplyPiece | null, ReplyEnd<ResponseResult>>;

type Check = (call: Call) => void;

interface ResponseCallOptions {
  /** The bounds at the offer that serves the session, known once it is chosen. */
  readonly boundsAt: (offer: Offer) => ResponseBounds;
  readonly check: Check;
  /** Opens the session at the provider, for the first call of a session. Rejects with UpstreamFailure. */
  readonly connect?: (offer: Offer, call: Call, signal: AbortSignal) => Promise<void>;
}

/**
 * One response of a session as a call. It is locked first, and waits for a response to begin; the response is then
 * charged to it. A lock that no response used costs nothing.
 */
export class ResponseCall implements ProviderAdapter<ResponseResult, ReplyPiece> {
  readonly endsWithCall = true;
  readonly waits = true;
  /** Resolves once the money is locked, and the session is open if the call opens it. */
  readonly locked: Promise<void>;
  /** The settlement of a response that has begun. It is fine if nothing awaits it. */
  readonly settled: Promise<Settled>;
  /** Until a response begins, the stream waits for the consumer. So then it has no `cut`, see ProviderStream. */
  cut?: (cut: Cut) => ReplyEnd<ResponseResult>;
  /** The most that it may use: of the lock, then of the response that has begun. Known once `locked` has resolved. */
  bounds!: ResponseBounds;
  /** The id of the response that is charged to it; null while it waits for one. */
  responseId: string | null = null;
  readonly delivered: Delivered = { sound: NO_GROWTH, textBytes: 0, audioSeconds: 0 };
  /** The session knows its end: its `response.done` came, or its provider left. */
  ended = false;
  /** The part of the conversation that its output becomes. */
  grows: Growth = NO_GROWTH;
  readonly #options: ResponseCallOptions;
  readonly #gone = new CuttableCancelSource();
  readonly #lock = Promise.withResolvers<void>();
  readonly #settlement = Promise.withResolvers<Settled>();
  #call: Call | null = null;
  #offer: Offer | null = null;
  #steps: ResponseStep[] = [];
  #waiting: { resolve(step: ResponseStep): void; reject(error: unknown): void } | null = null;
  #signal: AbortSignal | null = null;
  #begun = false;

  constructor(options: ResponseCallOptions) {
    this.#options = options;
    this.locked = this.#lock.promise;
    this.locked.catch(() => {});
    this.settled = this.#settlement.promise;
    this.settled.catch(() => {});
  }

  /** Id of the call and of its record. Known once `locked` has resolved. */
  get id(): string {
    return this.#call!.id;
  }

  /** Locks its money. Resolves like `locked`. Rejects with the errors of `prepare` and `run`. */
  open(
    pipeline: Pick<Pipeline, 'prepare' | 'run'>,
    request: Omit<CallRequest<ResponseResult>, 'adapter'>,
  ): Promise<void> {
    void this.#run(pipeline, { ...request, adapter: this });
    return this.locked;
  }

  begin(call: Call): void {
    this.#call = call;
    this.#options.check(call);
  }

  startAttempt(offer: Offer, _send: Send, signal: AbortSignal): this {
    this.#offer = offer;
    this.#signal = signal;
    // The signal is that of this call, so its listener ends with it.
    signal.addEventListener('abort', () => this.#stop(signal.reason));
    return this;
  }

  async next(): Promise<ResponseStep> {
    if (!this.#begun) await this.#start();
    const step = this.#steps.shift();
    if (step !== undefined) return step;
    const signal = this.#signal!;
    if (signal.aborted) throw signal.reason;
    return new Promise((resolve, reject) => (this.#waiting = { resolve, reject }));
  }

  /** A response to a conversation has begun, which is charged to this call. */
  respond(id: string, conversation: Growth): void {
    this.responseId = id;
    this.delivered.sound = conversation;
    // The lock has room that this response did not need, and that its provider cannot claim.
    this.bounds = boundsAt(this.#offer!, conversation, this.bounds.budget.completionCap);
    const cut = (cause: Cut) => {
      const end = endUnfinished(this.#offer!, this.bounds, this.delivered, cause.reason);
      this.#grow(end);
      return { ...end, cut: cutReply(cause, 'begun') };
    };
    this.cut = cut;
    this.#give({ done: false, value: null });
  }

  deliver(textBytes: number, audioSeconds: number): void {
    const first = this.delivered.textBytes === 0 && this.delivered.audioSeconds === 0;
    this.delivered.textBytes += textBytes;
    this.delivered.audioSeconds += audioSeconds;
    // Only the first is told, for the time to it: the parts pass beside the call.
    if (first) this.#give({ done: false, value: { byteLength: 1 } });
  }

  /** The response has ended, with its `response.done`. Resolves once it is settled. Rejects if that fails. */
  done(response: unknown): Promise<Settled> {
    const responseMembers = isObject(response) ? response : {};
    this.#end(endOfResponse(this.#offer!, this.bounds, responseMembers, this.delivered));
    return this.settled;
  }

  /** The provider left. A response that had begun is charged as far as it came. */
  providerLeft(): void {
    if (this.responseId === null) return this.abandon();
    this.#end(endUnfinished(this.#offer!, this.bounds, this.delivered, 'provider_left'));
  }

  /** The client left: the end of the response is waited for, within the bounds of every call. */
  clientLeft(): void {
    this.#gone.abort();
  }

  /** Gives the money back, or ends a response that has begun at once: what came of it is charged. */
  abandon(): void {
    this.#gone.cut.abort();
  }

  async #start(): Promise<void> {
    this.#begun = true;
    const { boundsAt, connect } = this.#options;
    this.bounds = boundsAt(this.#offer!);
    try {
      await connect?.(this.#offer!, this.#call!, this.#signal!);
    } catch (error) {
      // The next provider is tried, which begins again.
      this.#begun = false;
      throw error;
    }
    this.#lock.resolve();
  }

  async #run(pipeline: Pick<Pipeline, 'prepare' | 'run'>, request: CallRequest<ResponseResult>): Promise<void> {
    try {
      const call = await pipeline.prepare(request);
      let last: Frame<ResponseResult> | null = null;
      for await (const frame of pipeline.run(call, this.#gone)) last = frame;
      if (last?.type !== 'settled') throw new Error('a response ended without a settlement');
      this.#lock.reject(new UpstreamFailure('the call was cut', { retryable: false, attributedTo: 'nobody' }));
      this.#settlement.resolve(last);
    } catch (error) {
      this.#lock.reject(error);
      this.#settlement.reject(error);
    }
  }

  #end(end: ReplyEnd<ResponseResult>): void {
    this.ended = true;
    this.#grow(end);
    this.#give({ done: true, value: end });
  }

  #grow({ usage }: ReplyEnd<ResponseResult>): void {
    const tokens = usage === null ? 0 : Number(completionTokens(usage));
    // A token of text counts as a byte of text.
    const spoken = this.delivered.audioSeconds > 0 ? { audioTokens: tokens } : { bytes: tokens };
    this.grows = { ...NO_GROWTH, items: 1, ...spoken };
  }

  #give(step: ResponseStep): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (waiting === null) this.#steps.push(step);
    else waiting.resolve(step);
  }

  #stop(reason: unknown): void {
    this.#waiting?.reject(reason);
    this.#waiting = null;
  }
}

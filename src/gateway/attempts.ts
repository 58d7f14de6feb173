import { GatewayError, UpstreamFailure } from '#wire';
import type { EndFrame } from '#billing';
import type { Primitive } from '#config';
import type { Call, Candidate, Cut, Offer, ReplyEnd, Talk } from './call.ts';
import { errorOfAttempt } from './failed-attempt.ts';
import type { CallObserver } from './observer.ts';
import { createBlame, type Blame } from './routing/blame.ts';
import type { RetryBudget } from './routing/retry-budget.ts';
import type { Health, Router } from './routing/router.ts';

export interface AttemptsOptions {
  readonly health: Health;
  readonly router: Router;
  readonly retryBudget: RetryBudget;
  readonly observer: CallObserver;
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
}

const NEVER = -1;

/** Primitives whose calls have no effects, so that one which was refused may be made elsewhere. */
const WITHOUT_EFFECTS: ReadonlySet<Primitive> = new Set<Primitive>(['model', 'image']);

/** The end of a conversation that was cut: what it has not ended by itself is free. */
export const CANCELLED: ReplyEnd = {
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason: 'cancelled',
  flags: [],
  tail: null,
};

/** The attempts of one call, one after the other: measures them and says what becomes of each. */
export class Attempts {
  /** Bytes were given out: no other candidate is tried. */
  given = false;
  readonly #options: AttemptsOptions;
  readonly #call: Call;
  #count = 0;
  #startedAt = 0;
  #firstByteAt = NEVER;
  /** Made for a call that failed somewhere. */
  #blame: Blame | null = null;
  /** The first refusal of the request. */
  #refusal: GatewayError | null = null;

  constructor(options: AttemptsOptions, call: Call) {
    this.#options = options;
    this.#call = call;
  }

  get #candidate(): Candidate {
    return this.#call.candidates[this.#count - 1]!;
  }

  get last(): boolean {
    return this.#count >= this.#call.candidates.length;
  }

  /** Begins the next attempt. Returns the offer that is asked. */
  begin(): Offer {
    this.#count++;
    const { offer } = this.#candidate;
    this.#startedAt = this.#options.now();
    if (this.#count === 1) this.#options.retryBudget.called(this.#startedAt);
    this.#firstByteAt = NEVER;
    this.#options.observer.attemptStarted(this.#call, offer, this.#startedAt);
    return offer;
  }

  /** The offer said something. Returns whether it is the first time in this attempt. */
  heard(): boolean {
    if (this.#firstByteAt !== NEVER) return false;
    this.#firstByteAt = this.#options.now();
    this.#options.observer.firstByte(this.#call, this.#firstByteAt);
    return true;
  }

  succeeded(end: ReplyEnd): EndFrame {
    const { health, router, now } = this.#options;
    const { primitive, free, stickyKey } = this.#call;
    const { offer } = this.#candidate;
    const at = now();
    const sample = {
      firstByteMs: this.#firstByteAt - this.#startedAt,
      durationMs: at - this.#startedAt,
      completionTokens: primitive === 'model' ? Number(end.usage?.completion ?? 0n) : 0,
    };
    health.succeeded(offer, sample, free === null);
    this.#blame?.over(this.#candidate);
    this.#flag(offer, end);
    if (stickyKey !== null) router.served(stickyKey, offer);
    return this.#endFrame(end, at);
  }

  /**
   * An attempt threw. Returns the end of the call where the gateway itself ended it, or null where the next
   * candidate is to be tried. Throws the error of the call otherwise. `left`: the client is gone and the drain bound
   * reached.
   */
  failed(talk: Talk | null, error: unknown, left: boolean, stopped: Error | null): EndFrame | null {
    const { health, now } = this.#options;
    const { offer } = this.#candidate;
    const cut = cutOf(left, stopped, error);
    const end = cut === null || talk === null ? null : talk.cut ? talk.cut(cut) : CANCELLED;
    // What the provider delivered is paid, and it is blamed for nothing. Where that is nothing, only a client that
    // left by itself is not told of a failure.
    if (end !== null && (end.outcome !== 'free' || left)) {
      health.notProbed(offer, this.#call.caller.account);
      this.#flag(offer, end);
      return this.#endFrame(end, now());
    }
    if (left && cut !== null) throw error;
    if (stopped) throw this.#late(talk, stopped, error);
    if (!(error instanceof UpstreamFailure)) throw error;
    this.#fault(error);
    return null;
  }

  /** The call took too long. */
  #late(talk: Talk | null, stopped: Error, cause: unknown): GatewayError {
    const { health, observer } = this.#options;
    const { offer } = this.#candidate;
    // In a conversation a consumer may be what took so long: one that was asked, or that called for something slow.
    // A server that is silent fails by itself.
    if (talk?.cut) {
      this.#blamed().failed(this.#candidate, this.#startedAt, null);
      this.#blamed().over(null);
    } else health.notProbed(offer, this.#call.caller.account);
    const failure = new UpstreamFailure(stopped.message, { retryable: false, blame: 'provider', cause });
    observer.attemptFailed(this.#call, offer, failure);
    return new GatewayError('provider_unavailable', `Provider ${offer.provider.name} did not finish in time`, {
      cause,
    });
  }

  /** Throws the error of the call where no other candidate is tried. */
  #fault(error: UpstreamFailure): void {
    const { health, observer, retryBudget } = this.#options;
    const { offer } = this.#candidate;
    const isRefused = WITHOUT_EFFECTS.has(this.#call.primitive) && isRefusal(error);
    if (error.blame === 'provider') this.#blamed().failed(this.#candidate, this.#startedAt, error);
    else if (isRefused) this.#blamed().refused(this.#candidate, this.#startedAt);
    if (error.blame === 'account' || error.tooLarge) health.notProbed(offer, this.#call.caller.account);
    observer.attemptFailed(this.#call, offer, error);
    // Two that refuse a request are believed.
    const mayGoOn = error.retryable || (isRefused && this.#refusal === null);
    if (isRefused) this.#refusal ??= errorOfAttempt(error, offer);
    if (!this.given && !this.last && mayGoOn && (error.unsent || retryBudget.take())) return;
    this.#blame?.over(null);
    // The first refusal is that of the preferred provider, and the same whether or not a retry was to be had.
    throw this.#refusal ?? errorOfAttempt(error, offer);
  }

  #blamed(): Blame {
    return (this.#blame ??= createBlame(this.#options.health, this.#call));
  }

  #flag(offer: Offer, { flags }: ReplyEnd): void {
    if (flags.length === 0) return;
    for (const each of flags) this.#options.health.flagged(offer, each);
    this.#options.observer.flagged(this.#call, offer, flags);
  }

  #endFrame(end: ReplyEnd, at: number): EndFrame {
    const { offer, price } = this.#candidate;
    const { usage, outcome, estimated, finishReason, flags, tail, details } = end;
    return {
      type: 'end',
      price: price.id,
      provider: offer.provider.id,
      providerName: offer.provider.name,
      usage,
      outcome,
      estimated,
      detail: {
        service: offer.service,
        providerName: offer.provider.name,
        outcome,
        estimated,
        finishReason,
        flags,
        cached: toldOf(details?.cached),
        cacheWritten: toldOf(details?.cacheWritten),
        reasoning: toldOf(details?.reasoning),
        attempts: this.#count,
        firstByteMs: this.#firstByteAt === NEVER ? 0 : Math.round(this.#firstByteAt - this.#startedAt),
        durationMs: Math.round(at - this.#call.begunAt),
      },
      tail,
    };
  }
}

/** A part that is 0 is left out of the record, as JSON leaves out what is undefined. */
const toldOf = (count: number | undefined): number | undefined => (count === 0 ? undefined : count);

/** The provider says that the request is wrong, or gave a reply that its consumer may have asked too much for. */
const isRefusal = ({ blame, tooLarge }: UpstreamFailure): boolean => blame === 'request' || tooLarge;

/** Whether an attempt ended because the gateway ended it, and why; null where it failed. */
function cutOf(left: boolean, stopped: Error | null, error: unknown): Cut | null {
  if (error instanceof GatewayError) return null;
  if (left) return { reason: 'cancelled', message: 'its client left' };
  if (stopped !== null) return { reason: 'timeout', message: stopped.message };
  return error instanceof UpstreamFailure && error.tooLarge ? { reason: 'too_large', message: error.message } : null;
}

import { GatewayError } from '#errors';
import { UpstreamFailure } from '#wire';
import {
  promptCost,
  promptTokens,
  settledPrice,
  completionTokens,
  type EndFrame,
  type ReplyPiece,
} from '#billing/amounts';
import { type Endpoint, type Offer, type Health, type PromptSums, isOwn } from '#catalog';
import type { Call, Candidate, CallObserver, Cut, ReplyEnd, ProviderStream } from './call.ts';
import { errorOfAttempt, isOutage, isRefusal, nobodysFault, refusesKey, UNREPEATED } from './attempt-error.ts';
import { nameFlags } from './flags.ts';
import type { ClaimDensity } from './claim-density.ts';
import type { RetryBudget } from './retry-budget.ts';
import { createFailureAttribution, type FailureAttribution } from './routing/failure-attribution.ts';
import { isTooLong, nextPlace, repeatsAfter, WITHOUT_EFFECTS } from './routing/attempt-plan.ts';
import type { Router } from './routing/router.ts';

export interface AttemptsOptions {
  readonly health: Health;
  readonly router: Router;
  readonly retryBudget: RetryBudget;
  /** Whether the only offer of a model gets a request once more after a brief failure. Default false. */
  readonly repeats?: boolean;
  /** Absent: claims of providers are not compared. */
  readonly claims?: ClaimDensity;
  readonly observer: CallObserver;
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
}

/** The requests of an attempt that threw. */
interface Ended {
  /** Why the call was stopped early; null while it was not. */
  readonly stopped: Error | null;
  /** The whole request has gone out, and it is not the gateway itself that ended the call. */
  readonly isTaken: boolean;
  /** It is the gateway itself that ended the call, not its client. */
  readonly byGateway: boolean;
  /** See `Cut.rest`. */
  readonly rest?: Buffer | undefined;
}

const NEVER = -1;

/** A stream of which nothing has come for so long is slow to a person who waits for it. */
const SLOW_MS = 5_000;
/** A client that leaves after this time without a head has given up on an offer that is not proven. */
const GIVEN_UP_MS = 10_000;

/** Of the reason of a failed attempt, in the record of its call. */
const REASON_CHARS_MAX = 200;

/** The end of a provider adapter that was cut before it ended. It is free. */
export const CANCELLED: ReplyEnd<null> = {
  usage: null,
  outcome: 'free',
  estimated: false,
  finishReason: 'cancelled',
  flags: [],
  cut: { reason: 'cancelled', message: 'its client left', undelivered: true, code: 'reply_cut' },
  result: null,
};

/** The attempts of one call, one after the other. Measures each attempt and decides what follows from its result. */
export class Attempts<R> {
  /** True once bytes were given out. From then on only candidates that can go on with them are tried. */
  hasGiven = false;
  /** Milliseconds to wait before the next attempt begins. */
  pauseMs = 0;
  readonly #options: AttemptsOptions;
  readonly #call: Call;
  #count = 0;
  /** Of the current candidate, and of the next one. */
  #place = 0;
  #next = 0;
  /** Whether the current candidate has got the request a second time. */
  #isRepeat = false;
  /** Models that are not tried any more. */
  #closed: Set<string> | null = null;
  /** The current offer, if it is not proven. */
  #trial: Offer | null = null;
  #startedAt = 0;
  #begunAt: number;
  #firstByteAt = NEVER;
  /** Created at the first failed attempt. */
  #attributedTo: FailureAttribution | null = null;
  #refusal: GatewayError | null = null;
  /** Why a stream ended in the middle of its answer, whatever those say that were to go on with it. */
  #brokenOff: GatewayError | null = null;

  constructor(options: AttemptsOptions, call: Call) {
    this.#options = options;
    this.#call = call;
    this.#begunAt = call.begunAt;
  }

  get #candidate(): Candidate {
    return this.#call.candidates[this.#place]!;
  }

  /** The candidate that would be tried after the current one; null without one. Arrays are slow at -1. */
  get next(): Candidate | null {
    const place = nextPlace(this.#call.candidates, this.#place, this.#closed);
    return place === -1 ? null : this.#call.candidates[place]!;
  }

  get current(): Candidate {
    return this.#candidate;
  }

  /** The place of the current offer, with the consumer's own key if the call uses it. */
  get endpoint(): Endpoint {
    const { offer, ownKey } = this.#candidate;
    return ownKey?.endpoint ?? offer.endpoint;
  }

  /** The current offer is a stranger's that has not served enough calls yet. */
  get isTrial(): boolean {
    return this.#trial !== null;
  }

  /** The current attempt is over, however it ended. */
  over(): void {
    if (this.#trial !== null) this.#options.health.tried(this.#trial, -1);
    this.#trial = null;
  }

  /** Begins the next attempt. Returns its offer. */
  begin(): Offer {
    this.over();
    this.#count++;
    this.#isRepeat = this.#count > 1 && this.#next === this.#place;
    this.#place = this.#next;
    const { offer } = this.#candidate;
    this.#call.currentOffer = offer;
    if (!this.#options.health.isProven(offer)) {
      this.#options.health.tried(offer, 1);
      this.#trial = offer;
    }
    this.#startedAt = this.#options.now();
    if (this.#count === 1) this.#options.retryBudget.called(this.#startedAt);
    this.#firstByteAt = NEVER;
    this.#options.observer.attemptStarted(this.#call, offer, this.#startedAt);
    return offer;
  }

  /** The work of this attempt begins only now, see ProviderStream.waits. */
  workBegins(): void {
    this.#startedAt = this.#begunAt = this.#options.now();
    this.#options.observer.workBegins(this.#call, this.#startedAt);
  }

  /** The provider sent something. Returns whether this is the first time in this attempt. */
  hasHeard(): boolean {
    if (this.#firstByteAt !== NEVER) return false;
    this.#firstByteAt = this.#options.now();
    this.#options.observer.firstByte(this.#call, this.#firstByteAt);
    return true;
  }

  succeeded(end: ReplyEnd<R>): EndFrame<R> {
    const { health, router, now } = this.#options;
    const { primitive, free, stickyKey, prefix = null } = this.#call;
    const { offer } = this.#candidate;
    const at = now();
    const sample = {
      firstByteMs: this.#firstByteAt - this.#startedAt,
      durationMs: at - this.#startedAt,
      completionTokens: primitive === 'model' && end.usage ? Number(completionTokens(end.usage)) : 0,
      prompts: promptsOf(this.#candidate, end),
    };
    health.succeeded(offer, sample, free === null);
    this.#attributedTo?.over(this.#candidate);
    this.#flag(offer, end);
    this.#compareClaim(offer, end);
    if (stickyKey !== null) router.served(stickyKey, offer);
    if (prefix !== null) router.servedPrefix(prefix, offer, namesCache(end));
    return this.#endFrame(end, at);
  }

  /**
   * An attempt threw. Returns the end of the call if the gateway itself ended it, or null if the next candidate is to
   * be tried. Otherwise throws the error of the call. `hasLeft`: the client has left and the time for draining is over.
   */
  async failed(
    providerStream: ProviderStream<R, ReplyPiece> | null,
    error: unknown,
    hasLeft: boolean,
    { stopped, isTaken, byGateway, rest }: Ended,
  ): Promise<EndFrame<R> | null> {
    const { health, now } = this.#options;
    const { offer } = this.#candidate;
    if (stopped instanceof GatewayError) {
      // The gateway stopped the call, so nobody pays and no provider is blamed.
      health.notProbed(offer, this.#call.caller.account);
      throw stopped;
    }
    const isTooLarge = error instanceof UpstreamFailure && error.tooLarge;
    const isFault = error instanceof UpstreamFailure && !isTooLarge;
    const isSilent = !isTooLarge && this.#isSilent(providerStream);
    const isBlamed = hasLeft && !byGateway && this.#blamesSilence();
    const own = isTaken && !isFault && isOwn(offer) && (hasLeft || !isSilent);
    const cut = cutOf({ hasLeft, stopped, error, own, rest });
    const end =
      cut === null || providerStream === null ? null : providerStream.cut ? await providerStream.cut(cut) : CANCELLED;
    // The delivered part is paid, and the provider is not blamed. If nothing was delivered, the call fails, unless its
    // client has left.
    if (end !== null && (end.outcome !== 'free' || hasLeft)) {
      if (!isBlamed) health.notProbed(offer, this.#call.caller.account);
      this.#flag(offer, end);
      return this.#endFrame(end, now());
    }
    if (hasLeft && cut !== null) throw error;
    if (stopped) throw this.#late(providerStream, stopped, error);
    if (!(error instanceof UpstreamFailure)) throw error;
    if (this.#candidate.ownKey !== undefined && refusesKey(error)) throw this.#refusedKey(error);
    const why = this.#fault(error);
    if (why === null) return null;
    const late = isTaken && !isSilent ? await this.#lateOwn(providerStream, error) : null;
    if (late === null) throw why;
    return this.#endFrame(late, now());
  }

  /** The end of an answer in one piece that did not begin in time at an own provider; null for any other failure. */
  async #lateOwn(
    providerStream: ProviderStream<R, ReplyPiece> | null,
    error: UpstreamFailure,
  ): Promise<ReplyEnd<R | null> | null> {
    if (!error.timedOut || this.#firstByteAt !== NEVER || !isOwn(this.#candidate.offer)) return null;
    const end = await providerStream?.cut?.({ reason: 'timeout', message: error.message, own: true });
    return !end || end.outcome === 'free' ? null : end;
  }

  /**
   * Its client left before anything had come. After a long time that counts against an offer that is not proven. Of any
   * other stream, calls of this account then go to other providers, if there are any.
   */
  #blamesSilence(): boolean {
    const { stream, candidates, caller } = this.#call;
    const waitedMs = this.#options.now() - this.#startedAt;
    if (this.#firstByteAt !== NEVER) return false;
    if (this.#trial !== null && waitedMs >= GIVEN_UP_MS) {
      this.#blamed().failed(this.#candidate, this.#startedAt, null);
      this.#blamed().over(null);
      return true;
    }
    const isSlow = stream && candidates.length > 1 && waitedMs >= SLOW_MS;
    if (isSlow) this.#options.health.failed(this.#candidate.offer, caller.account, this.#startedAt);
    return isSlow;
  }

  /** Whether a stream has not begun. An answer in one piece begins when it is done. */
  #isSilent(stream: ProviderStream<R, ReplyPiece> | null): boolean {
    return stream?.streams === true && this.#firstByteAt === NEVER;
  }

  #late(providerStream: ProviderStream<R, ReplyPiece> | null, stopped: Error, cause: unknown): GatewayError {
    const { health } = this.#options;
    const { offer } = this.#candidate;
    // A stream without `cut` may have waited for its consumer: for an answer, or for slow work that the consumer called
    // for. So the provider is not blamed. A silent server has its own timeout.
    if (providerStream?.cut) {
      this.#blamed().failed(this.#candidate, this.#startedAt, null);
      this.#blamed().over(null);
    } else health.notProbed(offer, this.#call.caller.account);
    const failure = new UpstreamFailure(stopped.message, {
      retryable: false,
      attributedTo: 'provider',
      timedOut: true,
      cause,
    });
    this.#tell(failure);
    return new GatewayError('provider_unavailable', `Provider ${offer.provider.name} did not finish in time`, {
      cause,
      ...UNREPEATED,
    });
  }

  /**
   * The provider refused the consumer's own key, or its account there has no money or too many requests. That is not
   * the provider's fault, and other consumers can still call it.
   */
  #refusedKey(failure: UpstreamFailure): GatewayError {
    const { health } = this.#options;
    const { offer } = this.#candidate;
    health.notProbed(offer, this.#call.caller.account);
    this.#tell(nobodysFault(failure));
    this.#attributedTo?.over(null);
    const { status, retryAfterS, unpaid } = failure;
    const detail = failure.detail ?? unpaid?.words ?? null;
    const detailText = detail === null ? '' : `: ${detail}`;
    const message = `${offer.provider.name} answered your own key with ${status}${detailText}. Keys are replaced and removed at /api/v1/provider-keys`;
    // SDKs repeat a call with this status, but a used up account stays as it is.
    if (status === 429 && unpaid !== null)
      return new GatewayError('rate_limit_exceeded', message, {
        headers: { 'x-should-retry': 'false' },
        providerCode: unpaid.code,
        cause: failure,
      });
    return status === 429
      ? new GatewayError('rate_limit_exceeded', message, { retryAfterS, cause: failure })
      : new GatewayError('unprocessable', message, { cause: failure });
  }

  /** Returns null if the next candidate is to be tried. Otherwise the error of the call. */
  #fault(error: UpstreamFailure): GatewayError | null {
    const { health } = this.#options;
    const { offer, ownKey } = this.#candidate;
    if (!this.hasGiven && this.#repeats(error)) return null;
    const isRefused = WITHOUT_EFFECTS.has(this.#call.primitive) && isRefusal(error);
    const isBlameless = ownKey !== undefined && !isOutage(error);
    if (!isBlameless) {
      if (error.attributedTo === 'provider') this.#blamed().failed(this.#candidate, this.#startedAt, error);
      else if (isRefused) this.#blamed().refused(this.#candidate, this.#startedAt);
    }
    if (isBlameless || error.attributedTo === 'account' || error.tooLarge)
      health.notProbed(offer, this.#call.caller.account);
    this.#tell(isBlameless ? nobodysFault(error) : error);
    const mayGoOn = error.retryable || (isRefused && this.#passesOn(error));
    if (isRefused) this.#refusal ??= errorOfAttempt(error, offer, this.#call);
    if (this.hasGiven) this.#brokenOff ??= errorOfAttempt(error, offer, this.#call);
    if (mayGoOn && this.#takesNext(error)) return null;
    this.#attributedTo?.over(null);
    // The first refusal comes from the preferred provider. Throwing it gives the same error with and without a retry.
    return this.#brokenOff ?? this.#refusal ?? errorOfAttempt(error, offer, this.#call);
  }

  /** Whether the only offer of its model gets the request once more. It is not blamed before that has failed too. */
  #repeats(error: UpstreamFailure): boolean {
    const { health, retryBudget, repeats, now } = this.#options;
    const { primitive, candidates } = this.#call;
    const { offer } = this.#candidate;
    if (!repeats || this.#isRepeat) return false;
    const afterMs = repeatsAfter(error, primitive, now() - this.#startedAt);
    if (afterMs === null || !health.works(offer)) return false;
    if (candidates.some((one) => one !== this.#candidate && one.offer.service === offer.service)) return false;
    if (!retryBudget.take()) return false;
    this.#tell(error);
    this.pauseMs = afterMs;
    this.#next = this.#place;
    return true;
  }

  /**
   * Whether a refused request goes to another candidate. What is too long for a model goes to the next model. So does
   * content that breaks a policy, if the caller wants that. After a second refusal of another kind the request counts
   * as wrong.
   */
  #passesOn(error: UpstreamFailure): boolean {
    const tooLong = isTooLong(error);
    if (error.policy || tooLong) (this.#closed ??= new Set()).add(this.#candidate.offer.service);
    if (error.policy && this.#call.contentFallbacks !== true) return false;
    return tooLong || this.#refusal === null;
  }

  /** Once bytes were given out, only a candidate is taken that can go on with them. */
  #takesNext(error: UpstreamFailure): boolean {
    const { candidates, adapter } = this.#call;
    let next = nextPlace(candidates, this.#place, this.#closed);
    while (this.hasGiven && next !== -1 && !adapter.goesOnAt?.(candidates[next]!.offer))
      next = nextPlace(candidates, next, this.#closed);
    if (next === -1) return false;
    const isFailover = error.unsent || (error.retryable && this.#isSound(candidates[next]!));
    if (!isFailover && !this.#options.retryBudget.take()) return false;
    this.#next = next;
    this.pauseMs = 0;
    return true;
  }

  /**
   * Whether a candidate works, and is of a provider that this call has not tried. While one provider is down, all of
   * its calls need such a candidate.
   */
  #isSound({ offer }: Candidate): boolean {
    const isSame = ({ offer: { provider } }: Candidate) =>
      provider.id === offer.provider.id && provider.name === offer.provider.name;
    return !this.#call.candidates.slice(0, this.#place + 1).some(isSame) && this.#options.health.works(offer);
  }

  #blamed(): FailureAttribution {
    return (this.#attributedTo ??= createFailureAttribution(this.#options.health, this.#call));
  }

  #flag(offer: Offer, { flags, usage }: ReplyEnd): void {
    if (flags.length === 0) return;
    const namedFlags = nameFlags(flags);
    for (const each of namedFlags.flags) this.#options.health.flagged(offer, each);
    this.#options.observer.flagged(this.#call, offer, namedFlags, usage);
  }

  /** Flags a provider that claims far more tokens for its text than others of the service. Own ones are trusted. */
  #compareClaim(offer: Offer, { shownClaim: claim, usage }: ReplyEnd): void {
    const { claims, health, observer } = this.#options;
    if (claim === undefined || offer.model?.hiddenReasoning) return;
    if (claims?.add(offer, claim) !== true || isOwn(offer)) return;
    health.flagged(offer, 'usage_unusual');
    observer.flagged(this.#call, offer, { flags: ['usage_unusual'] }, usage);
  }

  #tell(failure: UpstreamFailure): void {
    const { observer, now } = this.#options;
    const { offer } = this.#candidate;
    const { message, detail, status, attributedTo: blame } = failure;
    (this.#call.failedAttempts ??= []).push({
      provider: offer.provider.name,
      service: offer.service,
      error: (detail === null ? message : `${message}: ${detail}`).slice(0, REASON_CHARS_MAX),
      status,
      blame,
      durationMs: Math.round(now() - this.#startedAt),
    });
    observer.attemptFailed(this.#call, offer, failure);
  }

  #endFrame(end: ReplyEnd<R | null>, at: number): EndFrame<R> {
    const { offer, price: requestedPrice, serviceTiers, variant } = this.#candidate;
    const { usage, outcome, estimated, finishReason, costMax = null, flags, cut, result, details, serviceTier } = end;
    const price = settledPrice(requestedPrice, serviceTiers, serviceTier, usage);
    const namedFlags = nameFlags(flags);
    return {
      type: 'end',
      price: price.id,
      provider: offer.provider.id,
      providerName: offer.provider.name,
      usage,
      outcome,
      costMax,
      estimated,
      cut,
      detail: {
        service: offer.service,
        providerName: offer.provider.name,
        outcome,
        estimated,
        finishReason,
        flags: namedFlags.flags,
        claims: namedFlags.claims,
        cut,
        cached: toldOf(details?.cached),
        cacheWritten: toldOf(details?.cacheWritten),
        reasoning: toldOf(details?.reasoning),
        serviceTier: serviceTier ?? undefined,
        variant,
        ownKey: this.#candidate.ownKey === undefined ? undefined : true,
        attempts: this.#count,
        failedAttempts: this.#call.failedAttempts,
        firstByteMs: this.#firstByteAt === NEVER ? 0 : Math.round(this.#firstByteAt - this.#startedAt),
        durationMs: Math.round(at - this.#begunAt),
      },
      result,
    };
  }
}

/**
 * The prompt of a call that is charged by its tokens, for the figures of its offer. Absent where cached tokens do not
 * cost less, because there a provider could claim any number of them.
 */
function promptsOf(
  { offer, price: requestedPrice, serviceTiers, ownKey }: Candidate,
  { usage, outcome, estimated, serviceTier }: ReplyEnd,
): PromptSums | undefined {
  const { input_cache_read: cachedRate, prompt: rate = 0n } = requestedPrice.rates;
  if (offer.primitive !== 'model' || cachedRate === undefined || cachedRate >= rate) return undefined;
  if (usage === null || estimated || ownKey !== undefined || (outcome !== 'complete' && outcome !== 'over_cap'))
    return undefined;
  return {
    prompt: Number(promptTokens(usage)),
    cached: Number((usage.input_cache_read ?? 0n) + (usage.input_audio_cache ?? 0n)),
    charged: promptCost(settledPrice(requestedPrice, serviceTiers, serviceTier, usage).rates, usage),
  };
}

const namesCache = ({ details }: ReplyEnd): boolean =>
  details !== undefined && details.cached + details.cacheWritten > 0;

/** Leaves out a part that is 0: JSON.stringify drops undefined members. */
const toldOf = (count: number | undefined): number | undefined => (count === 0 ? undefined : count);

/** Why the gateway ended an attempt; null if the attempt failed. */
function cutOf({
  hasLeft,
  stopped,
  error,
  own,
  rest,
}: Omit<Ended, 'isTaken' | 'byGateway'> & {
  readonly hasLeft: boolean;
  readonly error: unknown;
  readonly own: boolean;
}): Cut | null {
  if (error instanceof GatewayError) return null;
  if (hasLeft) return { reason: 'cancelled', message: 'its client left', own };
  if (stopped !== null) return { reason: 'timeout', message: stopped.message, own };
  if (!(error instanceof UpstreamFailure) || !error.tooLarge) return null;
  return { reason: 'too_large', message: error.message, own, ...(rest === undefined ? {} : { rest }) };
}

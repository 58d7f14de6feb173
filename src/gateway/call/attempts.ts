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
import type { Primitive } from '#config';
import { type Endpoint, type Offer, type Health, type PromptSums, isOwn } from '#catalog';
import type { Call, Candidate, CallObserver, Cut, ReplyEnd, ProviderStream } from './call.ts';
import { errorOfAttempt, UNREPEATED } from './attempt-error.ts';
import { nameFlags } from './flags.ts';
import type { ClaimDensity } from './claim-density.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { Router } from './routing/router.ts';

export interface AttemptsOptions {
  readonly health: Health;
  readonly router: Router;
  readonly retryBudget: RetryBudget;
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
  /** See `Cut.rest`. */
  readonly rest?: Buffer | undefined;
}

const NEVER = -1;

/** Of the reason of a failed attempt, in the record of its call. */
const REASON_CHARS_MAX = 200;

/** Primitives whose calls have no side effects, so a call that one provider refused may be sent to another. */
export const WITHOUT_EFFECTS: ReadonlySet<Primitive> = new Set<Primitive>(['model', 'image']);

/** Answers about a key and its account: not known, without money, not allowed, too many requests. */
const OF_A_KEY: ReadonlySet<number> = new Set([401, 402, 403, 429]);

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
  /** True once bytes were given out. From then on no other candidate is tried. */
  hasGiven = false;
  readonly #options: AttemptsOptions;
  readonly #call: Call;
  #count = 0;
  #startedAt = 0;
  #begunAt: number;
  #firstByteAt = NEVER;
  /** Created at the first failed attempt. */
  #attributedTo: FailureAttribution | null = null;
  #refusal: GatewayError | null = null;

  constructor(options: AttemptsOptions, call: Call) {
    this.#options = options;
    this.#call = call;
    this.#begunAt = call.begunAt;
  }

  get #candidate(): Candidate {
    return this.#call.candidates[this.#count - 1]!;
  }

  get last(): boolean {
    return this.#count >= this.#call.candidates.length;
  }

  /** The place of the current offer, with the consumer's own key if the call uses it. */
  get endpoint(): Endpoint {
    const { offer, ownKey } = this.#candidate;
    return ownKey?.endpoint ?? offer.endpoint;
  }

  /** Begins the next attempt. Returns its offer. */
  begin(): Offer {
    this.#count++;
    const { offer } = this.#candidate;
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
    { stopped, isTaken, rest }: Ended,
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
    const own = isTaken && !isFault && isOwn(offer) && (hasLeft || !isSilent);
    const cut = cutOf({ hasLeft, stopped, error, own, rest });
    const end =
      cut === null || providerStream === null ? null : providerStream.cut ? await providerStream.cut(cut) : CANCELLED;
    // The delivered part is paid, and the provider is not blamed. If nothing was delivered, the call fails, unless its
    // client has left.
    if (end !== null && (end.outcome !== 'free' || hasLeft)) {
      if (hasLeft && this.#isSlow()) health.failed(offer, this.#call.caller.account, this.#startedAt);
      else health.notProbed(offer, this.#call.caller.account);
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
   * Its client left a stream before the first event of it came, and none came in the time after that. Calls of this
   * account then go to other providers, if there are any.
   */
  #isSlow(): boolean {
    const { stream, candidates } = this.#call;
    return stream && candidates.length > 1 && this.#firstByteAt === NEVER;
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
    const { health, retryBudget } = this.#options;
    const { offer, ownKey } = this.#candidate;
    const isRefused = WITHOUT_EFFECTS.has(this.#call.primitive) && isRefusal(error);
    const isBlameless = ownKey !== undefined && !isOutage(error);
    if (!isBlameless) {
      if (error.attributedTo === 'provider') this.#blamed().failed(this.#candidate, this.#startedAt, error);
      else if (isRefused) this.#blamed().refused(this.#candidate, this.#startedAt);
    }
    if (isBlameless || error.attributedTo === 'account' || error.tooLarge)
      health.notProbed(offer, this.#call.caller.account);
    this.#tell(isBlameless ? nobodysFault(error) : error);
    // After a second refusal the request counts as wrong, and no further candidate is tried.
    const mayGoOn = error.retryable || (isRefused && this.#refusal === null);
    if (isRefused) this.#refusal ??= errorOfAttempt(error, offer, this.#call);
    const isFailover = () => error.unsent || (error.retryable && this.#isNextSound());
    if (!this.hasGiven && !this.last && mayGoOn && (isFailover() || retryBudget.take())) return null;
    this.#attributedTo?.over(null);
    // The first refusal comes from the preferred provider. Throwing it gives the same error with and without a retry.
    return this.#refusal ?? errorOfAttempt(error, offer, this.#call);
  }

  /**
   * Whether the next candidate works, and is of a provider that this call has not tried. While one provider is down,
   * all of its calls need such a candidate.
   */
  #isNextSound(): boolean {
    const { offer } = this.#call.candidates[this.#count]!;
    const isSame = ({ offer: { provider } }: Candidate) =>
      provider.id === offer.provider.id && provider.name === offer.provider.name;
    return !this.#call.candidates.slice(0, this.#count).some(isSame) && this.#options.health.works(offer);
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

/** Google's answer to a wrong key has the status of a wrong request. */
const NAMES_KEY = /\bapi[ _-]?key\b/i;

/** Whether a provider refused the consumer's own key, or the account that the key belongs to. */
const refusesKey = ({ status, detail }: UpstreamFailure): boolean =>
  status !== null && (OF_A_KEY.has(status) || (status === 400 && NAMES_KEY.test(detail ?? '')));

/**
 * Whether a failure of a call with a consumer's own key says something about the provider. Any other may be due to the
 * account of the key, which lacks the model or money, and could take the provider away from all others.
 */
const isOutage = ({ status, unreachable, timedOut, tooLarge }: UpstreamFailure): boolean =>
  (status !== null && status >= 500) || unreachable || timedOut || tooLarge;

/** The failure as the log and the figures have it. */
const nobodysFault = ({ message, status, retryable, detail, cause }: UpstreamFailure): UpstreamFailure =>
  new UpstreamFailure(message, { status, retryable, detail, cause, attributedTo: 'nobody' });

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

/**
 * The provider says that the request is wrong, or its reply is too large, which the consumer may have caused by asking
 * for too much.
 */
const isRefusal = ({ attributedTo, tooLarge, unheld }: UpstreamFailure): boolean =>
  attributedTo === 'request' || (tooLarge && !unheld);

/** Why the gateway ended an attempt; null if the attempt failed. */
function cutOf({
  hasLeft,
  stopped,
  error,
  own,
  rest,
}: Omit<Ended, 'isTaken'> & { readonly hasLeft: boolean; readonly error: unknown; readonly own: boolean }): Cut | null {
  if (error instanceof GatewayError) return null;
  if (hasLeft) return { reason: 'cancelled', message: 'its client left', own };
  if (stopped !== null) return { reason: 'timeout', message: stopped.message, own };
  if (!(error instanceof UpstreamFailure) || !error.tooLarge) return null;
  return { reason: 'too_large', message: error.message, own, ...(rest === undefined ? {} : { rest }) };
}

/** Decides which offers the failures of one call count against. */
interface FailureAttribution {
  /** An attempt failed through its provider's fault. `failure`: null if the call timed out. */
  failed(candidate: Candidate, startedAt: number, failure: Pick<UpstreamFailure, 'unreachable'> | null): void;
  /**
   * A provider refused the request. This is its failure only if another provider of the same service serves the
   * request.
   */
  refused(candidate: Candidate, startedAt: number): void;
  /** The call is over. `server`: the candidate that served it; null if it failed and no further candidate is tried. */
  over(server: Candidate | null): void;
}

interface Suspect {
  readonly candidate: Candidate;
  readonly startedAt: number;
  readonly refused: boolean;
}

/**
 * After every failure the offer rests for the caller's account. The failure counts against the offer only if the call
 * failed at no other offer: a request that fails at two offers is more likely wrong itself. It is evidence for other
 * accounts only if the call had money locked. Otherwise anybody could create accounts without cost to produce evidence.
 *
 * A refusal is evidence only if the operator's own provider served the request. Otherwise somebody whose provider
 * accepts everything could send invalid requests and so close the offers of other providers.
 */
export function createFailureAttribution(health: Health, call: Call): FailureAttribution {
  const { account } = call.caller;
  const suspects: Suspect[] = [];
  return {
    failed(candidate, startedAt, failure) {
      if (failure?.unreachable) return health.unreachable(candidate.offer, call.free === null);
      health.failed(candidate.offer, account, startedAt);
      suspects.push({ candidate, startedAt, refused: false });
    },
    refused(candidate, startedAt) {
      suspects.push({ candidate, startedAt, refused: true });
    },
    over(server) {
      const isWrong = ({ candidate: { offer }, refused }: Suspect): boolean =>
        refused && server?.offer.service === offer.service;
      for (const suspect of suspects)
        if (isWrong(suspect)) health.failed(suspect.candidate.offer, account, suspect.startedAt);
      const [suspect] = suspects;
      if (suspects.length !== 1 || suspect === undefined || call.free !== null) return;
      const { candidate, startedAt, refused } = suspect;
      if (refused && !isWrong(suspect)) return;
      const isTold = !refused || server?.offer.endpoint.kind === 'direct';
      health.blamed(candidate.offer, account, startedAt, isTold && candidate.estimate > 0n);
    },
  };
}

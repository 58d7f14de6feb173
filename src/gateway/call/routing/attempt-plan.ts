import type { UpstreamFailure } from '#wire';
import type { Primitive } from '#config';
import type { Candidate } from '../call.ts';

/*
 * The plan of a call's attempts: which offers of which models are tried, in which order, and what follows a failure.
 * The router orders the offers of one model.
 */

/**
 * The attempts of a call over the models that it names. `models`: the candidates of each model, in the order of the
 * router. A model gets at most as many attempts as leave one for each model after it, so that a fallback is asked
 * however many offers of the first model fail. Offers that rest after a failure come after all others, and so after
 * the healthy fallbacks. A prompt goes to at most TRIALS_MAX offers that are not proven.
 */
export function planAttempts(
  models: readonly (readonly Candidate[])[],
  attemptsMax: number,
  isResting: (candidate: Candidate) => boolean,
  isProven: (candidate: Candidate) => boolean = () => true,
): readonly Candidate[] {
  return models.length === 1 ? models[0]! : withFewTrials(planOver(models, attemptsMax, isResting), isProven);
}

const TRIALS_MAX = 2;

/** The list with the first TRIALS_MAX of those that are not proven. */
export function withFewTrials<T>(list: readonly T[], isProven: (one: T) => boolean): readonly T[] {
  let trialsLeft = TRIALS_MAX;
  return list.length <= TRIALS_MAX ? list : list.filter((one) => isProven(one) || trialsLeft-- > 0);
}

function planOver(
  models: readonly (readonly Candidate[])[],
  attemptsMax: number,
  isResting: (candidate: Candidate) => boolean,
): readonly Candidate[] {
  const plan: Candidate[] = [];
  const resting: Candidate[] = [];
  let attemptsLeft = Math.max(attemptsMax, models.length);
  models.forEach((candidates, index) => {
    const share = candidates.slice(0, attemptsLeft - (models.length - 1 - index));
    attemptsLeft -= share.length;
    for (const candidate of share) (isResting(candidate) ? resting : plan).push(candidate);
  });
  return resting.length === 0 ? plan : plan.concat(resting);
}

/**
 * The place of the next candidate after the one at `place`, -1 without one. `closed`: models that are not tried
 * any more; null for none.
 */
export function nextPlace(candidates: readonly Candidate[], place: number, closed: ReadonlySet<string> | null): number {
  for (let next = place + 1; next < candidates.length; next++)
    if (closed === null || !closed.has(candidates[next]!.offer.service)) return next;
  return -1;
}

/** The prompt is longer than the model takes, which every other offer of that model would say too. */
export const isTooLong = ({ code }: UpstreamFailure): boolean => code === 'context_length_exceeded';

/** Primitives whose calls have no side effects, so a call that one provider refused may be sent to another. */
export const WITHOUT_EFFECTS: ReadonlySet<Primitive> = new Set<Primitive>(['model', 'image']);

/** Statuses of a provider that failed at the moment. */
const BRIEF: ReadonlySet<number> = new Set([500, 503]);
/** Statuses of a provider with too many requests, which says when it has fewer. */
const BUSY: ReadonlySet<number> = new Set([429, 529]);
const REPEAT_AFTER_MS = 500;
const RETRY_AFTER_S_MAX = 3;

/**
 * Milliseconds after which the only offer of a model gets the request once more; null if it does not. The failure has
 * to be brief and quick, and the provider must not have acted. `afterMs`: how long the attempt took.
 */
export function repeatsAfter(failure: UpstreamFailure, primitive: Primitive, afterMs: number): number | null {
  const { status, unsent, unreachable, retryAfterS } = failure;
  if (!failure.retryable || afterMs > RETRY_AFTER_S_MAX * 1_000) return null;
  if (!unsent && !WITHOUT_EFFECTS.has(primitive)) return null;
  const isBrief = unreachable || (status !== null && BRIEF.has(status));
  const isBusy = status !== null && BUSY.has(status) && retryAfterS !== undefined;
  if (!isBrief && !isBusy) return null;
  if (retryAfterS === undefined) return REPEAT_AFTER_MS;
  return retryAfterS <= RETRY_AFTER_S_MAX ? Math.max(REPEAT_AFTER_MS, retryAfterS * 1_000) : null;
}

const CONTENT_MS = 10_000;
const REASONED_CONTENT_MS = 60_000;

/**
 * How long a stream may take to its first content if another candidate could answer instead; null for a model that
 * makes more than text, which takes its time. A model that declares reasoning which it does not show, or which has its
 * own price, thinks before it speaks.
 */
export function contentLimitMs({ offer: { model }, price }: Candidate): number | null {
  if (!model?.outputModalities.every((output) => output === 'text')) return null;
  const isReasoned = model.hiddenReasoning !== undefined || price.rates.internal_reasoning !== undefined;
  return isReasoned ? REASONED_CONTENT_MS : CONTENT_MS;
}

const TRIAL_MS = 20_000;
const TRIAL_OF_MEDIA_MS = 60_000;

/**
 * The same for a stranger's offer that is not proven, whether it streams or not. null for a call that may have acted at
 * the provider, which no other one gets.
 */
export function trialLimitMs(candidate: Candidate, stream: boolean): number | null {
  if (!WITHOUT_EFFECTS.has(candidate.offer.primitive)) return null;
  const contentMs = contentLimitMs(candidate);
  return contentMs === null ? TRIAL_OF_MEDIA_MS : stream ? Math.min(contentMs, TRIAL_MS) : TRIAL_MS;
}

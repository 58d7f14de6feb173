import { isObject, type JsonObject } from '#wire';
import { completionTokens, promptTokens, type Usage } from '#billing/amounts';
import { chargeOfCut, type Cut } from '#call';
import { flagBeyond, flagClaim, NO_FLAGS, type RaisedFlag } from '#call/flags';
import type { ChatBudget, UnseenTokens } from '../request/chat-budget.ts';
import { flagSearches, PLAIN, type PricedParts, splitUsage } from '../price/priced-parts.ts';
import { type PromptSize, tokensOf } from '../request/prompt-size.ts';
import { NO_SOUND, spokenTokens } from '../request/sound.ts';

/** A provider's claim of usage, checked against the budget of the call. */
export interface ChatUsage {
  /** The billed usage; null when nothing valid was claimed. */
  readonly usage: Usage | null;
  readonly flags: readonly RaisedFlag[];
  /** The usage object for the client: the provider's own with the billed numbers in it, or measured numbers. */
  readonly shownUsage: Readonly<Record<string, unknown>>;
  readonly details: TokenDetails;
}

const MISSING: readonly RaisedFlag[] = ['usage_missing'];
const INVALID: readonly RaisedFlag[] = ['usage_invalid'];
const OVER_CAP: readonly RaisedFlag[] = ['over_cap'];

export interface UsageBounds {
  readonly budget: ChatBudget;
  readonly size: PromptSize;
  /** The parts with their own price. Default none. */
  readonly parts?: PricedParts;
  /** Absent for the operator's own model without declared hidden reasoning. */
  readonly unseen?: UnseenTokens;
  /** The format that sound in the answer has. Default the one of the fewest bytes. */
  readonly speech?: unknown;
}

export interface Output {
  readonly outputBytes: number;
  /** Bytes of output that is not text. */
  readonly otherBytes: number;
  /** Pictures in `otherBytes`. Default none. */
  readonly pictures?: number;
  /** Bytes of sound in `otherBytes`, without its base64. Default none. */
  readonly soundBytes?: number;
  /** Web searches that a cut reply shows. Its claim may be of before them. */
  readonly webSearches?: number;
}

/** Tokens of one completion that no reply shows: special tokens for its end, its role and its channel. */
const TOKENS_OF_FRAME = 32;

const TRUSTED: UnseenTokens = { max: null, usual: 0 };

/**
 * Reads the claim of a complete reply. A claim beyond the budget is cut to the budget, so that it never costs more
 * than the lock. A claim beyond what was delivered is flagged. If `unseen.max` is set, the claim is also cut to what
 * was delivered and to these unseen tokens.
 */
export function readUsage(claim: unknown, bounds: UsageBounds, output: Output): ChatUsage {
  if (claim === undefined || claim === null) return unclaimed(MISSING, bounds, output);
  const counts = parseClaim(claim);
  if (!counts) return unclaimed(INVALID, bounds, output);
  const { budget, unseen = TRUSTED } = bounds;
  const prompt = Math.min(counts.prompt, budget.promptTokensMax);
  const within = Math.min(counts.completion, budget.completionTokensMax);
  const explained =
    shownTokensMax(budget, output) + (unseen.max === null ? reasoningOf(claim) : unseen.max * completionsOf(budget));
  const completion = unseen.max === null ? within : Math.min(within, explained);
  const details = tokenDetails(claim as Record<string, unknown>, prompt, completion);
  // If these members followed the spread in the literal, V8 would take many times as long.
  const shownUsage: Record<string, unknown> = { ...claim };
  shownUsage['prompt_tokens'] = prompt;
  shownUsage['completion_tokens'] = completion;
  shownUsage['total_tokens'] = prompt + completion;
  return {
    usage: toUsage(prompt, completion, bounds, { claim: { members: claim as JsonObject, details }, output }),
    details,
    flags: implausibleIn(counts, claim as JsonObject, bounds, explained),
    shownUsage,
  };
}

/**
 * The flags of a claim. `explained`: the most completion tokens that were delivered. A provider that was sent no cap is
 * not flagged for exceeding it.
 */
function implausibleIn(
  { prompt, completion, adds }: ClaimedCounts,
  claim: JsonObject,
  { budget, parts = PLAIN }: UsageBounds,
  explained: number,
): readonly RaisedFlag[] {
  const { promptTokensMax, completionTokensMax: cap, keptBy } = budget;
  let flags = flagBeyond(NO_FLAGS, 'prompt', prompt, promptTokensMax);
  if (keptBy === 'provider' || explained < cap)
    flags = flagBeyond(flags, 'completion', completion, Math.min(cap, explained));
  if (!adds) flags = flagTotal(flags, claim['total_tokens'], prompt + completion);
  return flagSearches(flags, claim, parts);
}

function flagTotal(flags: readonly RaisedFlag[], total: unknown, sum: number): readonly RaisedFlag[] {
  const claimed = typeof total === 'number' ? total : null;
  return flagClaim(flags, { meter: 'total', claimed, ...((claimed ?? 0) > sum ? { most: sum } : { least: sum }) });
}

/** The most tokens that the delivered output can have, because a token has at least one byte. */
function shownTokensMax(budget: ChatBudget, { outputBytes, otherBytes }: Output): number {
  return outputBytes + otherBytes + TOKENS_OF_FRAME * completionsOf(budget);
}

const completionsOf = ({ completionCap, completionTokensMax }: ChatBudget): number =>
  completionTokensMax / completionCap;

/** Tokens that the claim itself says were not shown: reasoning, and rejected predictions of the client. */
const reasoningOf = (claim: object): number =>
  detail(claim, 'reasoning_tokens') + detail(claim, 'rejected_prediction_tokens');

/** A part of the completion tokens, as the claim has it; 0 if it has none. */
function detail(claim: object, name: string): number {
  const { completion_tokens_details: details } = claim as { completion_tokens_details?: unknown };
  const count = isObject(details) ? details[name] : 0;
  return isCount(count) ? count : 0;
}

/**
 * Measures the usage of a reply that was cut, by its bytes and by the unseen tokens that the model declares. `usage`
 * is null if the reply had produced nothing.
 */
export function measureUsage(bounds: UsageBounds, output: Output): ChatUsage {
  return usageOf(measured(bounds, output), bounds, output);
}

const usageOf = (measuredSizes: Measured, bounds: UsageBounds, output: Output): ChatUsage => ({
  usage: cameOf(output)
    ? toUsage(measuredSizes.prompt_tokens, measuredSizes.completion_tokens, bounds, {
        claim: { members: measuredSizes, details: NO_DETAILS },
        output,
      })
    : null,
  details: NO_DETAILS,
  flags: NO_FLAGS,
  shownUsage: measuredSizes,
});

const cameOf = ({ outputBytes, otherBytes, webSearches = 0 }: Output): boolean =>
  outputBytes > 0 || otherBytes > 0 || webSearches > 0;

/** A claim counts for the whole output if the measured tokens are at most this many times the claimed ones. */
const CLAIM_BEHIND_MAX = 2;

/**
 * The usage of a reply that was cut. A claim in the middle of a stream may cover only its beginning, because some
 * servers send zeros, or only the prompt, until the end. So a claim far below the measured output is raised to the
 * measure. A claim of 0 tokens is flagged, unless the client left. Otherwise any client could leave early to get a
 * provider flagged that reports its usage at the end. `estimated`: the usage is measured, at least in part. `cut`: null
 * for output past a cap that the provider does not take.
 */
export function cutUsage(
  claim: unknown,
  bounds: UsageBounds,
  output: Output,
  cut: Cut | null,
): ChatUsage & { readonly estimated: boolean } {
  const claimed = readUsage(claim, bounds, output);
  const measure = measured(bounds, output);
  const measuredUsage = usageOf(measure, bounds, output);
  const saidPrompt = claimed.usage === null ? 0n : promptTokens(claimed.usage);
  const saidCompletion = claimed.usage === null ? 0n : completionTokens(claimed.usage);
  if (cut !== null && measuredUsage.usage === null) {
    const charge = chargeOfCut(cut, { came: false, reported: saidPrompt + saidCompletion > 0n });
    if (charge === 'input') {
      const { prompt_tokens: prompt } = measure;
      const shownMeasure: Measured = { ...measure, completion_tokens: 0, total_tokens: prompt };
      const usage = toUsage(prompt, 0, bounds, { claim: { members: shownMeasure, details: NO_DETAILS }, output });
      return { ...measuredUsage, usage, shownUsage: shownMeasure, estimated: true };
    }
    if (charge !== 'usage') return { ...measuredUsage, estimated: true };
  }
  if (claimed.usage === null) return { ...measuredUsage, estimated: true };
  if (leastOf(measure) <= Number(saidCompletion) * CLAIM_BEHIND_MAX) return { ...claimed, estimated: false };
  const ofPrompt = saidPrompt > 0n ? Number(saidPrompt) : measure.prompt_tokens;
  const tokens = Math.max(Number(saidCompletion), measure.completion_tokens);
  // Every request has a prompt, so a claim of 0 prompt tokens is wrong.
  const isZero = saidPrompt + saidCompletion === 0n && cut?.reason !== 'cancelled';
  const flags = isZero
    ? flagClaim(NO_FLAGS, { meter: 'completion', claimed: 0, least: Math.ceil(leastOf(measure)) })
    : claimed.flags;
  const both = { ...(claim as JsonObject), ...partsOf(measure, saidPrompt === 0n) };
  return {
    usage: toUsage(ofPrompt, tokens, bounds, { claim: { members: both, details: claimed.details }, output }),
    details: claimed.details,
    flags,
    shownUsage: shownMeasured(ofPrompt, tokens),
    estimated: true,
  };
}

/** A picture may have a quarter of the tokens that it is measured with, and sound a quarter of the seconds. */
const LEAST_OF_MEDIA = 1 / 4;

/** The fewest completion tokens that the measured output can be expected to have. */
function leastOf({ completion_tokens: completion, completion_tokens_details: parts }: Measured): number {
  const media = parts === undefined ? 0 : parts.audio_tokens + parts.image_tokens;
  return completion - Math.min(media, completion) * (1 - LEAST_OF_MEDIA);
}

function partsOf(
  { prompt_tokens_details: ofPrompt, completion_tokens_details: ofCompletion }: Measured,
  all: boolean,
): JsonObject {
  return {
    ...(all && ofPrompt !== undefined ? { prompt_tokens_details: ofPrompt } : {}),
    ...(ofCompletion === undefined ? {} : { completion_tokens_details: ofCompletion }),
  };
}

/**
 * The usage of a reply that ran past the cap that its provider got. It is measured, because a provider that ignores the
 * cap is not trusted. The operator's own provider bills what it reports, and is not flagged if it reports no more than
 * the cap: its tokens were longer than the gateway knows.
 */
export function overCapUsage(
  claim: unknown,
  bounds: UsageBounds,
  output: Output,
): { readonly usage: ChatUsage; readonly estimated: boolean; readonly flags: readonly RaisedFlag[] } {
  const claimed = bounds.budget.own === undefined ? null : parseClaim(claim);
  if (claimed === null) return { usage: measureUsage(bounds, output), estimated: true, flags: OVER_CAP };
  const usage = cutUsage(claim, bounds, output, null);
  const isKept = !usage.estimated && claimed.completion <= bounds.budget.completionTokensMax;
  return { usage, estimated: usage.estimated, flags: isKept ? usage.flags : OVER_CAP };
}

/**
 * The claim that counts after a stream has made both. Some providers report a running total, which never falls. So a
 * later claim with a smaller count keeps the larger one. An invalid claim replaces no valid one.
 */
export function largerClaim(earlier: unknown, later: unknown): unknown {
  const before = parseClaim(earlier);
  if (!before) return later;
  const now = parseClaim(later);
  if (!now) return earlier;
  if (now.prompt >= before.prompt && now.completion >= before.completion) return later;
  return {
    ...unfallen(earlier as JsonObject, later as JsonObject, [
      { was: before.prompt, is: now.prompt, members: PROMPT_MEMBERS },
      { was: before.completion, is: now.completion, members: COMPLETION_MEMBERS },
    ]),
    total_tokens: Math.max(before.prompt, now.prompt) + Math.max(before.completion, now.completion),
  };
}

interface TwoCounts {
  readonly was: number;
  readonly is: number;
  readonly members: readonly string[];
}

/**
 * The later usage, with the earlier members of each count that has fallen. The parts of a count stay with it, because
 * cached tokens have their own price. Returns `later` itself if no count has fallen.
 */
export function unfallen(earlier: JsonObject, later: JsonObject, counts: readonly TwoCounts[]): JsonObject {
  const fallen = counts.filter(({ was, is }) => is < was).flatMap(({ members }) => members);
  return fallen.length === 0 ? later : { ...later, ...Object.fromEntries(fallen.map((name) => [name, earlier[name]])) };
}

/** Completion tokens of a valid claim; null for any other. */
export function claimedCompletion(claim: unknown): number | null {
  return parseClaim(claim)?.completion ?? null;
}

interface ClaimedCounts {
  readonly prompt: number;
  readonly completion: number;
  readonly adds: boolean;
}

/**
 * `adds` is false if the claim's total is not the sum of its parts. The parts are billed. Gemini and xAI count thinking
 * in the total, and not in the completion. If the claim names exactly this difference as reasoning, it counts as
 * completion, as with a service that counts it there.
 */
function parseClaim(claim: unknown): ClaimedCounts | null {
  if (!isObject(claim)) return null;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = claim;
  if (!isCount(prompt) || !isCount(completion)) return null;
  if (total === undefined || total === null || total === prompt + completion) return { prompt, completion, adds: true };
  const reasoning = detail(claim, 'reasoning_tokens');
  const isApart = isCount(total) && reasoning > 0 && total === prompt + completion + reasoning;
  return { prompt, completion: isApart ? completion + reasoning : completion, adds: isApart };
}

/** A usage with numbers, for one whose counts are text. Otherwise the same one. */
export function withCounts<T>(usage: T): T {
  if (!isObject(usage)) return usage;
  const changes: Record<string, unknown> = {};
  let isChanged = false;
  for (const name of Object.keys(usage)) {
    const value = usage[name];
    const count = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : withCounts(value);
    if (count === value) continue;
    changes[name] = count;
    isChanged = true;
  }
  return isChanged ? { ...usage, ...changes } : usage;
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function unclaimed(flags: readonly RaisedFlag[], bounds: UsageBounds, output: Output): ChatUsage {
  return { usage: null, details: NO_DETAILS, flags, shownUsage: measured(bounds, output) };
}

interface Measured extends Record<string, unknown> {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details?: { readonly audio_tokens: number };
  readonly completion_tokens_details?: { readonly audio_tokens: number; readonly image_tokens: number };
}

/** Tokens of a picture that a model makes: those of OpenAI’s largest, and Google’s have fewer. */
const TOKENS_PER_PICTURE = 4_160;

/**
 * The measure of a call, within its bounds. The operator's own provider bills pictures, sound and files as well. If the
 * prompt has tokens that are not in the request, nothing but its bound is known of it. What a tool at the provider may
 * have added to it is no part of the measure, because it may not have run.
 */
function measured({ budget, size, unseen = TRUSTED, speech }: UsageBounds, output: Output): Measured {
  const { promptTokensMax, completionTokensMax, own } = budget;
  const { outputBytes, pictures = 0, soundBytes = 0 } = output;
  const text = tokensOf(outputBytes) + (outputBytes > 0 ? unseen.usual * completionsOf(budget) : 0);
  if (own === undefined)
    return shownMeasured(Math.min(tokensOf(size.bytes), promptTokensMax), Math.min(text, completionTokensMax));
  const { hidden, images, bytes, sound = NO_SOUND } = size;
  const { bytes: ofSound, tokens: soundTokens } = sound ?? { bytes: 0, tokens: promptTokensMax };
  const countedTokens = tokensOf(bytes - ofSound) + soundTokens + images * own.imageTokens;
  const prompt = hidden ? promptTokensMax : Math.min(countedTokens, promptTokensMax);
  const spoken = soundBytes === 0 ? 0 : spokenTokens(speech, soundBytes);
  const completion = Math.min(text + spoken + pictures * TOKENS_PER_PICTURE, completionTokensMax);
  const audio = Math.min(spoken, completion);
  const parts = { audio_tokens: audio, image_tokens: Math.min(pictures * TOKENS_PER_PICTURE, completion - audio) };
  return {
    ...shownMeasured(prompt, completion),
    ...(soundTokens > 0 ? { prompt_tokens_details: { audio_tokens: Math.min(soundTokens, prompt) } } : {}),
    ...(spoken > 0 || pictures > 0 ? { completion_tokens_details: parts } : {}),
  };
}

function shownMeasured(prompt: number, completion: number): Measured {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, estimated: true };
}

interface CountedOutput {
  readonly claim: { readonly members: JsonObject; readonly details: TokenDetails };
  readonly output: Output;
}

function toUsage(
  prompt: number,
  completion: number,
  { size, parts = PLAIN, unseen = TRUSTED }: UsageBounds,
  { claim, output }: CountedOutput,
): Usage {
  const { otherBytes, webSearches = 0 } = output;
  const otherMost = unseen.max === null ? completion : otherBytes;
  const tokens =
    parts.priced.size === 0
      ? { prompt: BigInt(prompt), completion: BigInt(completion) }
      : splitUsage(
          claim.members,
          { ...claim.details, prompt, completion, otherMost, searchesShown: webSearches },
          parts,
        );
  return size.images > 0 ? { ...tokens, image: BigInt(size.images) } : tokens;
}

interface TokenDetails {
  readonly cached: number;
  readonly cacheWritten: number;
  readonly reasoning: number;
}

export const NO_DETAILS: TokenDetails = { cached: 0, cacheWritten: 0, reasoning: 0 };

const PROMPT_MEMBERS = [
  'prompt_tokens',
  'prompt_tokens_details',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'prompt_cache_hit_tokens',
  'prompt_cache_miss_tokens',
] as const;
const COMPLETION_MEMBERS = ['completion_tokens', 'completion_tokens_details'] as const;

/**
 * The parts that a claim names, as in OpenAI's API or under the names that other servers use. The parts of the
 * prompt are together at most `prompt`, and the reasoning is at most `completion`.
 */
export function tokenDetails(claim: JsonObject, prompt: number, completion: number): TokenDetails {
  const ofPrompt = claim['prompt_tokens_details'];
  const ofCompletion = claim['completion_tokens_details'];
  const read = first(
    member(ofPrompt, 'cached_tokens'),
    claim['cache_read_input_tokens'],
    claim['prompt_cache_hit_tokens'],
  );
  const written = first(
    member(ofPrompt, 'cache_write_tokens'),
    member(ofPrompt, 'cache_creation_tokens'),
    claim['cache_creation_input_tokens'],
  );
  const reasoning = first(member(ofCompletion, 'reasoning_tokens'));
  if (read === 0 && written === 0 && reasoning === 0) return NO_DETAILS;
  const cached = Math.min(read, prompt);
  return {
    cached,
    cacheWritten: Math.min(written, prompt - cached),
    reasoning: Math.min(reasoning, completion),
  };
}

const member = (holder: unknown, name: string): unknown =>
  typeof holder === 'object' && holder !== null ? (holder as JsonObject)[name] : undefined;

function first(...counts: readonly unknown[]): number {
  for (const count of counts) if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return count;
  return 0;
}

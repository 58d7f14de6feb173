import { promptTokens, type Usage } from '#billing/amounts';
import type { ProviderFlag } from '#gateway';
import type { ChatBudget } from '../caps/chat-budget.ts';
import type { PromptSize } from '../request/prompt-size.ts';
import { tokensOf } from '../caps/tokens-of.ts';
import { NO_DETAILS, type TokenDetails, tokenDetails } from './token-details.ts';

/** A provider's claim of usage, held against the budget of the call. */
export interface ChatUsage {
  /** The billed usage; null when nothing valid was claimed. */
  readonly usage: Usage | null;
  readonly flags: readonly ProviderFlag[];
  /** The usage object for the client: the provider's with the numbers that are billed, or measured ones. */
  readonly shown: Readonly<Record<string, unknown>>;
  /** As claimed. */
  readonly details: TokenDetails;
}

const NO_FLAGS: readonly ProviderFlag[] = [];
const MISSING: readonly ProviderFlag[] = ['usage_missing'];
const INVALID: readonly ProviderFlag[] = ['usage_invalid'];
const IMPLAUSIBLE: readonly ProviderFlag[] = ['usage_implausible'];

/** The bounds of a call's usage. */
export interface UsageBounds {
  readonly budget: ChatBudget;
  readonly size: PromptSize;
  /** Tokens of a cache have a price of their own. Default false. */
  readonly pricesCache?: boolean;
  /** Absent: the operator's own model, which declares none. */
  readonly unseen?: UnseenTokens;
}

/** Tokens of one completion that may be claimed without being shown. */
export interface UnseenTokens {
  /** null: as many as the claim itself says are reasoning. */
  readonly max: number | null;
  /** Charged where no usage came. */
  readonly usual: number;
}

/** Delivered output. */
export interface Output {
  readonly outputBytes: number;
  /** Bytes of output that is not text. */
  readonly otherBytes: number;
}

/** Tokens of one completion that no reply shows: the marks of its end, its role and its channel. */
const TOKENS_OF_FRAME = 32;

const TRUSTED: UnseenTokens = { max: null, usual: 0 };

/**
 * Reads the claim of a complete reply. A claim beyond the budget is cut to it, so that it can never cost more than
 * the lock; one beyond what was delivered is flagged, and cut to it where the model is bound by what it declares.
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
  // A provider that was sent no cap cannot keep to it.
  const claimed = budget.keptBy === 'provider' ? counts.completion : within;
  const plausible = prompt === counts.prompt && completion === claimed && completion <= explained && counts.adds;
  const details = tokenDetails(claim as Record<string, unknown>, prompt, completion);
  // Members of a literal that follow a spread take V8 many times as long as these.
  const shown: Record<string, unknown> = { ...claim };
  shown['prompt_tokens'] = prompt;
  shown['completion_tokens'] = completion;
  shown['total_tokens'] = prompt + completion;
  return {
    usage: toUsage(prompt, completion, bounds, details),
    details,
    flags: plausible ? NO_FLAGS : IMPLAUSIBLE,
    shown,
  };
}

/** The most tokens that were delivered: none is shorter than a byte. */
function shownTokensMax(budget: ChatBudget, { outputBytes, otherBytes }: Output): number {
  return outputBytes + otherBytes + TOKENS_OF_FRAME * completionsOf(budget);
}

const completionsOf = ({ completionCap, completionTokensMax }: ChatBudget): number =>
  completionTokensMax / completionCap;

/** Tokens that a claim says were not shown, because they are reasoning or guesses of the client's that were wrong. */
function reasoningOf(claim: object): number {
  const { completion_tokens_details: details } = claim as { completion_tokens_details?: unknown };
  if (typeof details !== 'object' || details === null) return 0;
  const { reasoning_tokens: reasoning, rejected_prediction_tokens: rejected } = details as Record<string, unknown>;
  return (isCount(reasoning) ? reasoning : 0) + (isCount(rejected) ? rejected : 0);
}

/**
 * Measures the usage of a reply that was cut, by its bytes and by the unseen tokens that the model declares. null
 * usage when it had produced nothing.
 */
export function measureUsage(bounds: UsageBounds, output: Output): ChatUsage {
  const { prompt, completion } = measured(bounds, output);
  return {
    usage: output.outputBytes > 0 ? toUsage(prompt, completion, bounds) : null,
    details: NO_DETAILS,
    flags: NO_FLAGS,
    shown: shownMeasured(prompt, completion),
  };
}

/**
 * Text of at most so many times the tokens that a claim says, by the usual bytes of a token, is what the claim is of.
 */
const CLAIM_BEHIND_MAX = 2;

/**
 * The usage of a reply that was cut. A claim in the middle of a stream may be of its beginning: some servers send
 * zeros, or the prompt alone, until the end. So the usage is never below what was delivered. A claim of nothing at
 * all is flagged, unless the client `left`: by leaving, a client could have any provider flagged that reports its
 * usage at the end. `estimated`: measured, at least in part.
 */
export function cutUsage(
  claim: unknown,
  bounds: UsageBounds,
  output: Output,
  left = false,
): ChatUsage & { readonly estimated: boolean } {
  const claimed = readUsage(claim, bounds, output);
  const measuredUsage = measureUsage(bounds, output);
  if (claimed.usage === null) return { ...measuredUsage, estimated: true };
  const { completion: said = 0n } = claimed.usage;
  const saidPrompt = promptTokens(claimed.usage);
  const { prompt, completion } = measured(bounds, output);
  if (BigInt(completion) <= said * BigInt(CLAIM_BEHIND_MAX)) return { ...claimed, estimated: false };
  const ofPrompt = saidPrompt > 0n ? Number(saidPrompt) : prompt;
  const tokens = Math.max(Number(said), completion);
  // A request has a prompt, whatever came of it.
  const flags = saidPrompt === 0n && said === 0n && !left ? IMPLAUSIBLE : claimed.flags;
  return {
    usage: toUsage(ofPrompt, tokens, bounds, claimed.details),
    details: claimed.details,
    flags,
    shown: shownMeasured(ofPrompt, tokens),
    estimated: true,
  };
}

/** Completion tokens of a valid claim; null for any other. */
export function claimedCompletion(claim: unknown): number | null {
  return parseClaim(claim)?.completion ?? null;
}

/**
 * `adds` is false where the claim's own total is not the sum of its parts: some services count thinking in it,
 * which they do not break down. The parts are billed.
 */
function parseClaim(claim: unknown): { prompt: number; completion: number; adds: boolean } | null {
  if (typeof claim !== 'object' || claim === null) return null;
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
  } = claim as Record<string, unknown>;
  if (!isCount(prompt) || !isCount(completion)) return null;
  return { prompt, completion, adds: total === undefined || total === null || total === prompt + completion };
}

/** Whether a claim is a number of tokens. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function unclaimed(flags: readonly ProviderFlag[], bounds: UsageBounds, output: Output): ChatUsage {
  const { prompt, completion } = measured(bounds, output);
  return { usage: null, details: NO_DETAILS, flags, shown: shownMeasured(prompt, completion) };
}

function measured(
  { budget, size, unseen = TRUSTED }: UsageBounds,
  { outputBytes }: Output,
): { prompt: number; completion: number } {
  const reasoned = outputBytes > 0 ? unseen.usual * completionsOf(budget) : 0;
  return {
    prompt: Math.min(tokensOf(size.bytes), budget.promptTokensMax),
    completion: Math.min(tokensOf(outputBytes) + reasoned, budget.completionTokensMax),
  };
}

function shownMeasured(prompt: number, completion: number): Record<string, unknown> {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, estimated: true };
}

function toUsage(
  prompt: number,
  completion: number,
  { size, pricesCache = false }: UsageBounds,
  { cached, cacheWritten }: TokenDetails = NO_DETAILS,
): Usage {
  const tokens =
    pricesCache && cached + cacheWritten > 0
      ? {
          prompt: BigInt(prompt - cached - cacheWritten),
          completion: BigInt(completion),
          input_cache_read: BigInt(cached),
          input_cache_write: BigInt(cacheWritten),
        }
      : { prompt: BigInt(prompt), completion: BigInt(completion) };
  return size.images > 0 ? { ...tokens, image: BigInt(size.images) } : tokens;
}

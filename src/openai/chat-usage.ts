import type { ProviderFlag, Usage } from '#gateway';
import type { ChatBudget } from './chat-budget.ts';
import { tokensOf, type PromptSize } from './prompt-size.ts';

/** What a provider's `usage` is worth: a claim, held against what the call was allowed to use. */
export interface ChatUsage {
  /** What is billed by; null when nothing valid was claimed. */
  readonly usage: Usage | null;
  readonly flags: readonly ProviderFlag[];
  /** The usage object for the client: the provider's with the numbers that are billed, or measured ones. */
  readonly shown: Readonly<Record<string, unknown>>;
}

const NO_FLAGS: readonly ProviderFlag[] = [];
const MISSING: readonly ProviderFlag[] = ['usage_missing'];
const INVALID: readonly ProviderFlag[] = ['usage_invalid'];
const IMPLAUSIBLE: readonly ProviderFlag[] = ['usage_implausible'];

/** Reads the claim of a complete reply. A claim beyond the budget is cut to it, so that it can never cost more than the lock. */
export function readUsage(claim: unknown, budget: ChatBudget, size: PromptSize, outputBytes: number): ChatUsage {
  if (claim === undefined || claim === null) return unclaimed(MISSING, budget, size, outputBytes);
  const counts = parseClaim(claim);
  if (!counts) return unclaimed(INVALID, budget, size, outputBytes);
  const prompt = Math.min(counts.prompt, budget.promptTokensMax);
  const completion = Math.min(counts.completion, budget.completionTokensMax);
  const plausible = prompt === counts.prompt && completion === counts.completion && counts.adds;
  return {
    usage: toUsage(prompt, completion, size),
    flags: plausible ? NO_FLAGS : IMPLAUSIBLE,
    shown: { ...(claim as Record<string, unknown>), prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
  };
}

/** What a reply that was cut used, by its bytes. null usage when it had produced nothing. */
export function measureUsage(budget: ChatBudget, size: PromptSize, outputBytes: number): ChatUsage {
  const { prompt, completion } = measured(budget, size, outputBytes);
  return {
    usage: outputBytes > 0 ? toUsage(prompt, completion, size) : null,
    flags: NO_FLAGS,
    shown: shownMeasured(prompt, completion),
  };
}

/** Completion tokens of a valid claim; null when there is none. */
export function claimedCompletion(claim: unknown): number | null {
  return parseClaim(claim)?.completion ?? null;
}

/** `adds` is false where the claim's own total is another than its parts make: some services count thinking in it, which they do not break down. Its parts are what is billed. */
function parseClaim(claim: unknown): { prompt: number; completion: number; adds: boolean } | null {
  if (typeof claim !== 'object' || claim === null) return null;
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = claim as Record<string, unknown>;
  if (!isCount(prompt) || !isCount(completion)) return null;
  return { prompt, completion, adds: total === undefined || total === null || total === prompt + completion };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function unclaimed(flags: readonly ProviderFlag[], budget: ChatBudget, size: PromptSize, outputBytes: number): ChatUsage {
  const { prompt, completion } = measured(budget, size, outputBytes);
  return { usage: null, flags, shown: shownMeasured(prompt, completion) };
}

function measured(budget: ChatBudget, size: PromptSize, outputBytes: number): { prompt: number; completion: number } {
  return {
    prompt: Math.min(tokensOf(size.bytes), budget.promptTokensMax),
    completion: Math.min(tokensOf(outputBytes), budget.completionTokensMax),
  };
}

function shownMeasured(prompt: number, completion: number): Record<string, unknown> {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, estimated: true };
}

function toUsage(prompt: number, completion: number, size: PromptSize): Usage {
  return size.images > 0
    ? { prompt: BigInt(prompt), completion: BigInt(completion), image: BigInt(size.images) }
    : { prompt: BigInt(prompt), completion: BigInt(completion) };
}

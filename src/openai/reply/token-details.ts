type Json = Readonly<Record<string, unknown>>;

/** Parts of the tokens that a provider claims. */
export interface TokenDetails {
  /** Prompt tokens that were read from a cache. */
  readonly cached: number;
  /** Prompt tokens that were written to a cache. */
  readonly cacheWritten: number;
  /** Completion tokens that are reasoning. */
  readonly reasoning: number;
}

export const NO_DETAILS: TokenDetails = { cached: 0, cacheWritten: 0, reasoning: 0 };

/** The members of a claim that state its prompt tokens and their parts. */
export const PROMPT_MEMBERS = [
  'prompt_tokens',
  'prompt_tokens_details',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'prompt_cache_hit_tokens',
  'prompt_cache_miss_tokens',
] as const;
/** The members of a claim that state its completion tokens and their parts. */
export const COMPLETION_MEMBERS = ['completion_tokens', 'completion_tokens_details'] as const;

/**
 * The parts that a claim names, as in OpenAI's API or under the names that other servers use. The parts of the
 * prompt are together at most `prompt`, and the reasoning is at most `completion`.
 */
export function tokenDetails(claim: Json, prompt: number, completion: number): TokenDetails {
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

const member = (of: unknown, name: string): unknown =>
  typeof of === 'object' && of !== null ? (of as Json)[name] : undefined;

/** The first valid count; 0 without one. */
function first(...counts: readonly unknown[]): number {
  for (const count of counts) if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return count;
  return 0;
}

import type { JsonObject } from '#wire';
import type { LanguageModelV4FinishReason, LanguageModelV4Usage, SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { isRecord, listOf } from './json.ts';

/**
 * The usage of a reply in the form of the chat API; null if the package says none. Cached tokens are part of the
 * prompt, and reasoning is part of the completion, in both forms.
 */
export function toChatUsage(usage: LanguageModelV4Usage | undefined): Readonly<Record<string, unknown>> | null {
  if (!isRecord(usage)) return null;
  const { inputTokens: input, outputTokens: output } = usage as Partial<LanguageModelV4Usage>;
  const prompt = input?.total ?? sum(input?.noCache, input?.cacheRead, input?.cacheWrite);
  const completion = output?.total ?? sum(output?.text, output?.reasoning);
  // Half a claim would let the other half pass as 0. The gateway measures a reply without a claim.
  if (!Number.isFinite(prompt) || !Number.isFinite(completion)) return null;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt! + completion!,
    prompt_tokens_details: {
      cached_tokens: input?.cacheRead ?? 0,
      cache_write_tokens: input?.cacheWrite ?? 0,
      ...otherTokens(usage['raw'], 'prompt'),
    },
    completion_tokens_details: { reasoning_tokens: output?.reasoning ?? 0, ...otherTokens(usage['raw'], 'completion') },
    ...besides(usage['raw']),
  };
}

/** Members of a vendor's own usage that have a price, and that the AI SDK has no names for. */
const BESIDES = ['cache_creation', 'server_tool_use', 'num_search_queries'] as const;

const besides = (raw: unknown): JsonObject =>
  isRecord(raw)
    ? Object.fromEntries(BESIDES.flatMap((name) => (raw[name] === undefined ? [] : [[name, raw[name]] as const])))
    : {};

/** Tokens of sound and pictures in the usage of OpenAI's or of Google's API; empty if it names none. */
function otherTokens(raw: unknown, whole: 'prompt' | 'completion'): JsonObject {
  if (!isRecord(raw)) return {};
  const details = raw[`${whole}_tokens_details`];
  const audio = isRecord(details) ? details['audio_tokens'] : undefined;
  if (audio !== undefined) return { audio_tokens: audio };
  const tokens: Record<string, number> = {};
  for (const one of listOf(raw[whole === 'prompt' ? 'promptTokensDetails' : 'candidatesTokensDetails'])) {
    const { modality, tokenCount: count } = isRecord(one) ? one : {};
    const name = modality === 'AUDIO' ? 'audio_tokens' : modality === 'IMAGE' ? 'image_tokens' : null;
    if (name !== null && typeof count === 'number') tokens[name] = (tokens[name] ?? 0) + count;
  }
  return tokens;
}

/** The service tier in which the vendor says that it served, as a member of a reply; empty if it does not say. */
export function servedTier(metadata: SharedV4ProviderMetadata | undefined): { readonly service_tier?: string } {
  for (const facts of Object.values(metadata ?? {})) {
    const tier = isRecord(facts) ? facts['serviceTier'] : null;
    const name = isRecord(tier) ? tier['type'] : tier;
    if (typeof name === 'string') return { service_tier: name };
  }
  return {};
}

function sum(...parts: readonly (number | undefined)[]): number | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.reduce((all, one) => all + one, 0);
}

/** Names of the tokens of a request and of its answer, in the APIs of OpenAI, Mistral, and Google (two). */
const IN_NAMES = ['input_tokens', 'inputTokens', 'prompt_tokens', 'promptTokenCount', 'total_input_tokens'];
const OUT_NAMES = ['output_tokens', 'outputTokens', 'completion_tokens', 'candidatesTokenCount', 'total_output_tokens'];

const countIn = (usage: JsonObject, names: readonly string[]): number | undefined =>
  names.map((name) => usage[name]).find((count) => typeof count === 'number');

/**
 * The tokens of speech or a transcription in the form of OpenAI's API; null if the package does not tell both counts.
 * The AI SDK has no form of its own for them: a package passes what its vendor says.
 */
export function toAudioUsage(usage: unknown): Readonly<Record<string, unknown>> | null {
  if (!isRecord(usage)) return null;
  const [input, output] = [countIn(usage, IN_NAMES), countIn(usage, OUT_NAMES)];
  if (input === undefined || output === undefined) return null;
  const details = usage['input_token_details'];
  return {
    input_tokens: input,
    output_tokens: output,
    total_tokens: input + output,
    ...(isRecord(details) ? { input_token_details: details } : {}),
  };
}

const REASONS = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_calls',
  interrupted: 'length',
  other: undefined,
  error: 'error',
} as const satisfies Record<LanguageModelV4FinishReason['unified'], string | undefined>;

/** The finish reason of the chat API, and the vendor's own, which is also the reason if the package knows no other. */
export function toFinish(reason: LanguageModelV4FinishReason | undefined): {
  readonly finish_reason: string;
  readonly native_finish_reason?: string;
} {
  const { unified, raw } = isRecord(reason) ? reason : { unified: 'other' as const, raw: undefined };
  return {
    finish_reason: REASONS[unified] ?? (typeof raw === 'string' && raw !== '' ? raw : 'stop'),
    ...(typeof raw === 'string' ? { native_finish_reason: raw } : {}),
  };
}

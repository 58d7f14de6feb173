import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from '@ai-sdk/provider';
import { isRecord } from './json.ts';

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
    prompt_tokens_details: { cached_tokens: input?.cacheRead ?? 0, cache_write_tokens: input?.cacheWrite ?? 0 },
    completion_tokens_details: { reasoning_tokens: output?.reasoning ?? 0 },
  };
}

function sum(...parts: readonly (number | undefined)[]): number | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.reduce((all, one) => all + one, 0);
}

const REASONS = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_calls',
  interrupted: 'stop',
  other: 'stop',
  error: 'error',
} as const satisfies Record<LanguageModelV4FinishReason['unified'], string>;

/** The finish reason of the chat API, and the vendor's own. */
export function toFinish(reason: LanguageModelV4FinishReason | undefined): {
  readonly finish_reason: string;
  readonly native_finish_reason?: string;
} {
  const { unified, raw } = isRecord(reason) ? reason : { unified: 'other' as const, raw: undefined };
  return {
    finish_reason: REASONS[unified] ?? 'stop',
    ...(typeof raw === 'string' ? { native_finish_reason: raw } : {}),
  };
}

import { tokenDetails } from '../chat/chat-usage.ts';
import { type ChatEnd, isCharged } from '../translated/wire-encoder.ts';

type Json = Readonly<Record<string, unknown>>;

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** Members of a usage that a chat reply does not tell. Strict clients of this API require them. */
export const UNKNOWN_USAGE = {
  cache_creation: null,
  inference_geo: null,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: null,
  speed: null,
};

/**
 * The usage of a chat reply as Anthropic counts it. Tokens that were read from a cache, or written to one, do not
 * count as `input_tokens`. The sum of these three is billed. The cost is included.
 */
export function anthropicUsage({ usage }: ChatEnd): Json {
  const {
    prompt_tokens: prompt,
    completion_tokens: completion,
    prompt_tokens_details: _details,
    total_tokens: _total,
    completion_tokens_details: _of,
    cache_read_input_tokens: _read,
    cache_creation_input_tokens: _written,
    prompt_cache_hit_tokens: _hit,
    prompt_cache_miss_tokens: _miss,
    ...more
  } = usage ?? {};
  const { cached, cacheWritten, reasoning } = tokenDetails(usage ?? {}, count(prompt), count(completion));
  return {
    input_tokens: count(prompt) - cached - cacheWritten,
    cache_creation_input_tokens: cacheWritten,
    cache_read_input_tokens: cached,
    output_tokens: count(completion),
    ...UNKNOWN_USAGE,
    ...(reasoning > 0 ? { output_tokens_details: { thinking_tokens: reasoning } } : {}),
    ...more,
  };
}

/** Why a message stopped, in Anthropic's words. */
export interface Stop {
  readonly stop_reason: string;
  readonly stop_sequence: string | null;
}

const REASONS: Readonly<Record<string, string>> = {
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
};

/** `sequences`: the stop sequences of the request. `calls`: the message has tool calls. */
export function stopOf(end: ChatEnd, sequences: readonly string[], calls: boolean): Stop {
  const { finish, stopSequence, fault } = end;
  // A charged reply becomes an incomplete message instead of an error, so that no client retries it automatically.
  if (fault !== null && isCharged(end)) return { stop_reason: 'max_tokens', stop_sequence: null };
  if (finish === 'stop' && stopSequence !== null && sequences.includes(stopSequence))
    return { stop_reason: 'stop_sequence', stop_sequence: stopSequence };
  const reason = REASONS[finish ?? ''] ?? 'end_turn';
  return { stop_reason: reason === 'end_turn' && calls ? 'tool_use' : reason, stop_sequence: null };
}

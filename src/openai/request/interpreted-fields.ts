import { interpretedFields, type InterpretedFieldsAt, GatewayError, ambiguousKeyAt } from '#wire';
import { chatSchema } from './chat-schema.ts';
import { PART_TYPES } from './message-schema.ts';

const PRICES = interpretedFields(['prompt', 'completion', 'image']);

/**
 * The members that decide the meaning, the cost and the provider of a request. Each entry has the path of an object
 * and the names of its members.
 */
const INTERPRETED_FIELDS: InterpretedFieldsAt = [
  [
    [],
    interpretedFields(
      [
        ...Object.keys(chatSchema(1).properties),
        ...'functions function_call response_format modalities audio logprobs top_logprobs logit_bias'.split(' '),
        ...'parallel_tool_calls prediction reasoning reasoning_effort service_tier store verbosity'.split(' '),
        ...'safety_identifier prompt_cache_key images image_url image_data'.split(' '),
      ],
      // These are other names of the cap. They do not count as look-alikes.
      ['maxTokens', 'maxCompletionTokens'],
    ),
  ],
  [
    ['messages', '*'],
    interpretedFields([
      'role',
      'content',
      'name',
      'tool_calls',
      'tool_call_id',
      'function_call',
      'refusal',
      'audio',
      'images',
    ]),
  ],
  [['messages', '*', 'content', '*'], interpretedFields(['type', ...PART_TYPES])],
  [['messages', '*', 'content', '*', 'image_url'], interpretedFields(['url', 'detail'])],
  [['messages', '*', 'content', '*', 'video_url'], interpretedFields(['url'])],
  [['messages', '*', 'content', '*', 'audio_url'], interpretedFields(['url'])],
  [['messages', '*', 'content', '*', 'input_audio'], interpretedFields(['data', 'format'])],
  [['messages', '*', 'content', '*', 'file'], interpretedFields(['filename', 'file_data', 'file_id', 'file_url'])],
  [['tools', '*'], interpretedFields(['type', 'function', 'service', 'allowed_tools', 'disallowed_tools'])],
  [['tools', '*', 'function'], interpretedFields(['name', 'description', 'parameters', 'strict'])],
  [['stream_options'], interpretedFields(['include_usage'])],
  [['reasoning'], interpretedFields(['effort', 'max_tokens'])],
  [['provider'], interpretedFields(['order', 'only', 'ignore', 'allow_fallbacks', 'sort', 'max_price'])],
  [['provider', 'max_price'], PRICES],
  [['tollgate'], interpretedFields(['task_id', 'context_id'])],
];

/**
 * Throws GatewayError `invalid_request` for a body with an ambiguous key: a member that a provider could take for
 * one of the members above.
 */
export function refuseAmbiguousKeys(body: unknown): void {
  const fault = typeof body === 'object' && body !== null ? ambiguousKeyAt(body, INTERPRETED_FIELDS) : null;
  if (fault !== null) throw new GatewayError('invalid_request', fault.message, { param: fault.param });
}

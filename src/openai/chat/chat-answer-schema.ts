/*
 * The answers of chat, as the reference page describes them. The gateway writes answers as bytes, and never
 * serialises them with this schema.
 */

const text = { type: 'string' } as const;
const maybeText = { type: ['string', 'null'] } as const;
const tokens = { type: 'integer', description: 'Tokens.' } as const;

const usageSchema = {
  title: 'Usage',
  type: 'object',
  required: ['prompt_tokens', 'completion_tokens', 'total_tokens'],
  additionalProperties: true,
  properties: {
    prompt_tokens: tokens,
    completion_tokens: tokens,
    total_tokens: tokens,
    estimated: { type: 'boolean', description: 'The gateway counted the tokens, because the provider did not.' },
    cost: {
      type: 'number',
      description:
        'USD that left the balance, for the call and for all calls that were made under it. This field and `cost_details` are absent if an agent asks for input, because its task is charged when it ends.',
    },
    cost_details: {
      type: 'object',
      required: ['charged_usd', 'fee_usd', 'upstream_inference_prompt_cost', 'upstream_inference_completions_cost'],
      properties: {
        charged_usd: {
          type: 'string',
          description: 'What the call itself was charged. Less than `cost` if calls were made under it.',
        },
        fee_usd: { type: 'string', description: "The operator's share of the cost." },
        upstream_inference_completions_cost: {
          type: 'number',
          description: 'USD of the cost for completion tokens. 0 for a tool or an agent.',
        },
        upstream_inference_prompt_cost: {
          type: 'number',
          description: 'USD of the cost for the tokens and images of the prompt. 0 for a tool or an agent.',
        },
        other_usd: {
          type: 'string',
          description:
            'The rest of the cost, which is for something else than tokens, such as web searches, the tools of a run, or the answer of a tool or an agent. Absent if it is 0.',
        },
        receipt: { type: 'string', description: 'Signed receipt (compact JWS), in streams that asked for one.' },
        children: {
          type: 'array',
          items: { type: 'object', additionalProperties: true },
          description: 'The calls of a run that used tools of the gateway.',
        },
      },
    },
  },
} as const;

const toolCallProperties = {
  id: text,
  type: { type: 'string', const: 'function' },
  function: {
    title: 'CalledFunction',
    type: 'object',
    properties: { name: text, arguments: { type: 'string', description: 'JSON text.' } },
  },
} as const;

const messageProperties = {
  role: { type: 'string', const: 'assistant' },
  content: maybeText,
  reasoning: maybeText,
  refusal: maybeText,
} as const;

const common = {
  id: { type: 'string', description: 'Id of the call, for `/api/v1/generation`.' },
  created: { type: 'integer', description: 'Epoch seconds.' },
  model: { type: 'string', description: 'The name that was called.' },
  provider: { type: 'string', description: 'Name of the provider that served.' },
} as const;

const finishReason = {
  type: ['string', 'null'],
  description:
    '`stop`, `length`, `tool_calls`, `content_filter` or `error`. `native_finish_reason` beside it has the word of the provider, if it is another one.',
} as const;

const completionSchema = {
  title: 'ChatCompletion',
  type: 'object',
  required: ['id', 'object', 'created', 'model', 'choices', 'usage', 'system_fingerprint'],
  additionalProperties: true,
  properties: {
    ...common,
    object: { type: 'string', const: 'chat.completion' },
    system_fingerprint: maybeText,
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'message', 'finish_reason'],
        additionalProperties: true,
        properties: {
          index: { type: 'integer' },
          message: {
            type: 'object',
            additionalProperties: true,
            properties: {
              ...messageProperties,
              tool_calls: { type: 'array', items: { type: 'object', properties: toolCallProperties } },
            },
          },
          finish_reason: finishReason,
        },
      },
    },
    usage: usageSchema,
  },
} as const;

const chunkSchema = {
  title: 'ChatCompletionChunk',
  type: 'object',
  description: 'One `data:` event. `data: [DONE]` ends the stream. An event with `error` ends a stream that failed.',
  required: ['id', 'object', 'created', 'model', 'choices'],
  additionalProperties: true,
  properties: {
    ...common,
    object: { type: 'string', const: 'chat.completion.chunk' },
    system_fingerprint: text,
    choices: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'delta', 'finish_reason'],
        additionalProperties: true,
        properties: {
          index: { type: 'integer' },
          delta: {
            type: 'object',
            additionalProperties: true,
            properties: {
              ...messageProperties,
              tool_calls: {
                type: 'array',
                items: {
                  type: 'object',
                  required: ['index'],
                  properties: { index: { type: 'integer' }, ...toolCallProperties },
                },
              },
            },
          },
          finish_reason: finishReason,
        },
      },
    },
    usage: { ...usageSchema, description: 'Only the last chunk has it.' },
    error: {
      type: 'object',
      properties: { message: text, type: text, code: { type: 'integer' }, param: maybeText },
    },
  },
} as const;

export const chatAnswerSchema = {
  description: 'The completion; with `stream`, its chunks.',
  content: { 'application/json': { schema: completionSchema }, 'text/event-stream': { schema: chunkSchema } },
} as const;

/* The answer of `/messages` as the reference describes it. */

const tokens = { type: 'integer', description: 'Tokens.' };

export const messageAnswerSchema = {
  title: 'Message',
  type: 'object',
  required: ['id', 'type', 'role', 'model', 'content', 'stop_reason', 'usage'],
  additionalProperties: true,
  properties: {
    id: { type: 'string', description: 'Id of the message. The header `x-generation-id` has the id of the call.' },
    type: { type: 'string', const: 'message' },
    role: { type: 'string', const: 'assistant' },
    model: { type: 'string', description: 'The name that was called.' },
    content: {
      type: 'array',
      items: {
        title: 'MessageContent',
        type: 'object',
        required: ['type'],
        properties: {
          type: { type: 'string', description: 'Such as `text`, `thinking` or `tool_use`.' },
          text: { type: 'string', description: 'Of a text.' },
          thinking: { type: 'string', description: 'Of a thought.' },
          signature: { type: 'string', description: 'Of a thought.' },
          id: { type: 'string', description: 'Of a tool call.' },
          name: { type: 'string', description: 'Of a tool call.' },
          input: { description: 'Of a tool call: its arguments.' },
        },
        additionalProperties: true,
      },
    },
    stop_reason: {
      type: ['string', 'null'],
      enum: ['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'refusal', null],
    },
    stop_sequence: { type: ['string', 'null'] },
    usage: {
      type: 'object',
      required: ['input_tokens', 'output_tokens'],
      additionalProperties: true,
      properties: {
        input_tokens: { ...tokens, description: 'Tokens that were not read from a cache.' },
        cache_creation_input_tokens: tokens,
        cache_read_input_tokens: tokens,
        output_tokens: tokens,
        cost: { type: 'number', description: 'USD charged.' },
        cost_details: { type: 'object', additionalProperties: true, description: 'As at `/chat/completions`.' },
      },
    },
    tollgate: {
      type: 'object',
      additionalProperties: true,
      description: 'The task of an agent, and why a reply is not complete.',
    },
  },
} as const;

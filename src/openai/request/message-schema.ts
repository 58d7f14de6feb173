import { MUST_BE } from '#gateway';

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];
/** Types of content parts. A part of another type has no price, so the gateway refuses it. */
export const PART_TYPES = [
  'text',
  'image_url',
  'input_audio',
  'audio_url',
  'video_url',
  'file',
  'refusal',
  'thinking',
  'redacted_thinking',
] as const;
/** Anchored, so that the check reads only the first bytes of a data URL. */
const IMAGE_URL = '^(?:[hH][tT][tT][pP][sS]://[^\\s]|data:image/[a-zA-Z0-9.+-]{1,64};base64,[A-Za-z0-9+/_-])';

const PART = {
  title: 'ChatMessagePart',
  type: 'object',
  required: ['type'],
  properties: {
    type: { type: 'string', enum: PART_TYPES, [MUST_BE]: `one of ${PART_TYPES.join(', ')}` },
    text: { type: 'string', [MUST_BE]: 'a string' },
    image_url: {
      type: 'object',
      required: ['url'],
      properties: {
        url: {
          type: 'string',
          pattern: IMAGE_URL,
          [MUST_BE]: 'an https URL or a data URL such as "data:image/png;base64,…"',
        },
      },
      [MUST_BE]: 'an object such as {"url": "https://…"}',
    },
  },
  additionalProperties: true,
  // `required` comes first, because the validator reports the first branch that fails.
  allOf: [
    {
      anyOf: [
        { required: ['text'], properties: { text: { [MUST_BE]: 'the text of the part' } } },
        { properties: { type: { not: { const: 'text' } } } },
      ],
    },
    {
      anyOf: [
        { required: ['image_url'], properties: { image_url: { [MUST_BE]: 'an object such as {"url": "https://…"}' } } },
        { properties: { type: { not: { const: 'image_url' } } } },
      ],
    },
  ],
  [MUST_BE]: 'an object with a type, such as {"type": "text", "text": "…"}',
};

export const messageSchema = {
  title: 'ChatMessage',
  type: 'object',
  required: ['role'],
  properties: {
    role: { type: 'string', enum: ROLES, [MUST_BE]: `one of ${ROLES.join(', ')}` },
    content: { type: ['string', 'array', 'null'], items: PART, [MUST_BE]: 'a string or an array of parts' },
    tool_calls: {
      type: ['array', 'null'],
      items: { type: 'object', [MUST_BE]: 'an object' },
      [MUST_BE]: 'an array of tool calls',
    },
    tool_call_id: { description: 'Of the message of a tool: the id of the call that it answers.' },
    name: { description: 'The name of the participant.' },
  },
  additionalProperties: true,
  // An assistant message may have only tool calls, and a function result may be null.
  anyOf: [
    {
      required: ['content'],
      properties: { content: { type: ['string', 'array'], [MUST_BE]: 'a string or an array of parts' } },
    },
    { properties: { role: { enum: ['assistant', 'function'] } } },
  ],
  [MUST_BE]: 'an object with role and content',
};

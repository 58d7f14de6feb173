import type { JsonObject } from '#wire';
import { DOCUMENTED, EXAMPLE_MODEL, MUST_BE, nameSchema, numberField, objectField, onlyIf, tokensField } from '#http';
import type { RoutedBody } from '../translated/as-native.ts';
import { gatewayFields } from '../chat/chat-schema.ts';

/** The fields of a request of Anthropic's Messages API that the schema checks. `decode-request.ts` checks the rest. */
export interface MessagesBody extends RoutedBody {
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
  readonly max_tokens?: number | null;
  readonly system?: string | readonly Block[] | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly top_k?: number | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly tools?: readonly JsonObject[] | null;
  readonly tool_choice?: (JsonObject & { readonly type: string }) | null;
  readonly mcp_servers?: readonly JsonObject[] | null;
  readonly thinking?: (JsonObject & { readonly type: string }) | null;
  readonly output_config?: JsonObject | null;
  readonly output_format?: JsonObject | null;
  readonly metadata?: JsonObject | null;
  readonly [field: string]: unknown;
}

export interface Block {
  readonly type: string;
  readonly [member: string]: unknown;
}

const typed = (type: string) => ({ required: ['type'], properties: { type: { const: type } } });
const text = { type: 'string' };
const word = { type: 'string', minLength: 1 };
const https = { type: 'string', pattern: '^https://[^\\s]' };
const sourceOf = (...more: readonly object[]) => ({
  required: ['source'],
  properties: {
    source: {
      anyOf: [
        {
          type: 'object',
          required: ['type', 'media_type', 'data'],
          properties: {
            type: { const: 'base64' },
            media_type: { type: 'string', pattern: '^image/[a-z0-9.+-]+$|^application/pdf$' },
            data: { type: 'string', pattern: '^[A-Za-z0-9+/]+={0,2}$' },
          },
        },
        { type: 'object', required: ['type', 'url'], properties: { type: { const: 'url' }, url: https } },
        ...more,
      ],
    },
  },
});

/** The rules of blocks by their type, for the reference. `decode-request.ts` checks them. */
const NEEDED: Readonly<Record<string, JsonObject>> = {
  text: { required: ['text'], properties: { text } },
  image: sourceOf(),
  document: sourceOf({
    type: 'object',
    required: ['type', 'data'],
    properties: { type: { const: 'text' }, data: text },
  }),
  tool_use: {
    required: ['id', 'name', 'input'],
    properties: { id: word, name: word, input: { type: 'object' } },
  },
  tool_result: {
    required: ['tool_use_id'],
    properties: { tool_use_id: word, content: { anyOf: [{ const: null }, { type: 'string' }, { type: 'array' }] } },
  },
};

const block = {
  title: 'MessageBlock',
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string', [MUST_BE]: 'the type of the block, such as "text"' } },
  additionalProperties: true,
  [MUST_BE]: 'a block such as {"type": "text", "text": "…"}',
  [DOCUMENTED]: { allOf: Object.entries(NEEDED).map(([type, needed]) => onlyIf(typed(type), needed)) },
};
const content = (about: string) => ({
  type: ['string', 'array'],
  items: block,
  description: about,
  [MUST_BE]: 'a string or an array of blocks',
});

const toolFields = {
  tools: {
    type: ['array', 'null'],
    maxItems: 1024,
    items: {
      title: 'MessageTool',
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of the tool' },
        type: { type: ['string', 'null'], [MUST_BE]: 'the type of the tool, such as "custom"' },
      },
      additionalProperties: true,
      [MUST_BE]: 'an object such as {"name": "…", "input_schema": {"type": "object"}}',
      [DOCUMENTED]: {
        allOf: [
          {
            anyOf: [
              { required: ['name', 'input_schema'], properties: { name: text, input_schema: { type: 'object' } } },
              { ...typed('mcp'), required: ['type', 'service'], properties: { type: { const: 'mcp' }, service: word } },
              {
                required: ['type'],
                properties: { type: { type: 'string', not: { enum: ['custom', 'mcp', 'mcp_toolset'] } } },
                not: { required: ['input_schema'] },
              },
              typed('mcp_toolset'),
            ],
          },
        ],
      },
    },
    description:
      'Tools that the client runs. A tool of type `mcp` names a service of the gateway, whose tools the gateway calls. Server tools of Anthropic are dropped for providers that do not support this API.',
    [MUST_BE]: 'an array of at most 1024 tools',
  },
  mcp_servers: {
    type: ['array', 'null'],
    maxItems: 32,
    items: {
      title: 'MessageMcpServer',
      type: 'object',
      properties: {
        name: { type: ['string', 'null'], [MUST_BE]: 'the name of the server' },
        url: { type: ['string', 'null'], [MUST_BE]: 'the address of the server' },
        tool_configuration: objectField('`enabled` and `allowed_tools`, as in the first beta of the MCP connector.'),
      },
      additionalProperties: true,
      [MUST_BE]: 'an object with name and url',
    },
    description:
      'MCP servers whose tools the gateway calls. Their `url` is `<this gateway>/mcp/<service>`. Other servers are only for providers that support this API.',
    [MUST_BE]: 'an array of at most 32 MCP servers',
  },
  tool_choice: objectField('`auto`, `any`, `none`, or `tool` with a `name`.', {
    title: 'MessageToolChoice',
    required: ['type'],
    properties: {
      type: {
        type: 'string',
        enum: ['auto', 'any', 'tool', 'none'],
        [MUST_BE]: 'one of auto, any, tool, none',
      },
      name: { type: 'string', [MUST_BE]: 'the name of a tool' },
    },
    [DOCUMENTED]: {
      allOf: [{ anyOf: [{ const: null }, onlyIf(typed('tool'), { required: ['name'], properties: { name: word } })] }],
    },
  }),
} as const;

const OUTPUT = {
  properties: {
    effort: { anyOf: [{ const: null }, { type: 'string', maxLength: 32 }] },
    format: {
      anyOf: [
        { const: null },
        {
          type: 'object',
          required: ['type', 'schema'],
          properties: { type: { const: 'json_schema' }, schema: { type: 'object' } },
        },
      ],
    },
  },
};

/** JSON schema of `POST /messages`. `counted`: that of `POST /messages/count_tokens`, which needs no `max_tokens`. */
export function messagesSchema(messagesMax: number, counted = false) {
  return {
    title: counted ? 'MessageToCount' : 'MessageRequest',
    type: 'object',
    required: counted ? ['model', 'messages'] : ['model', 'messages', 'max_tokens'],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [
      {
        model: EXAMPLE_MODEL,
        ...(counted ? {} : { max_tokens: 100 }),
        messages: [{ role: 'user', content: 'What is a tollgate?' }],
      },
    ],
    properties: {
      model: {
        ...nameSchema,
        description:
          'As at `/chat/completions`: a model, `a2a/<agent>` or `mcp/<service>/<tool>`. `anthropic/<name>` is another name of `<name>`.',
        [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
      },
      messages: {
        type: 'array',
        minItems: 1,
        maxItems: messagesMax,
        items: {
          title: 'MessageTurn',
          type: 'object',
          required: ['role', 'content'],
          properties: {
            role: {
              type: 'string',
              enum: ['user', 'assistant', 'system'],
              [MUST_BE]: 'one of user, assistant, system',
            },
            content: content('Text, or blocks of text, images, documents, thinking, calls of tools and their results.'),
          },
          [MUST_BE]: 'an object with role and content',
        },
        description: 'The conversation so far.',
        [MUST_BE]: `an array of 1 to ${messagesMax} messages`,
      },
      system: { ...content('Instructions that the model gets first.'), type: ['string', 'array', 'null'] },
      max_tokens: tokensField('Most tokens of the answer. It bounds what the call can cost.'),
      stream: {
        type: ['boolean', 'null'],
        description: 'Answer as server-sent events. Default false.',
        [MUST_BE]: 'true or false',
      },
      temperature: numberField(0, 2, 'Sampling temperature.'),
      top_p: numberField(0, 1, 'Nucleus sampling.'),
      top_k: {
        type: ['integer', 'null'],
        minimum: 0,
        description: 'Sample only from this number of most likely tokens.',
        [MUST_BE]: 'an integer of at least 0',
      },
      stop_sequences: {
        type: ['array', 'null'],
        maxItems: 64,
        items: { type: 'string', [MUST_BE]: 'a string' },
        description: 'Sequences that end the answer.',
        [MUST_BE]: 'an array of at most 64 strings',
      },
      ...toolFields,
      thinking: objectField('Whether and how much the model thinks.', {
        title: 'MessageThinking',
        required: ['type'],
        properties: {
          type: {
            type: 'string',
            enum: ['enabled', 'adaptive', 'disabled'],
            [MUST_BE]: 'one of enabled, adaptive, disabled',
          },
          budget_tokens: tokensField('Tokens for thinking.'),
        },
      }),
      output_config: objectField('`format` with a JSON schema of the answer, and `effort`.', {
        [DOCUMENTED]: { allOf: [{ anyOf: [{ const: null }, OUTPUT] }] },
      }),
      metadata: objectField('`user_id` names the end user. The provider gets a digest of it.'),
      ...gatewayFields,
    },
  } as const;
}

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

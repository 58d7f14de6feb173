import type { JsonObject } from '#wire';
import { DOCUMENTED, EXAMPLE_MODEL, MUST_BE, nameSchema, numberField, objectField, onlyIf, tokensField } from '#http';
import type { RoutedBody } from '../translated/as-native.ts';
import { gatewayFields } from '../chat/chat-schema.ts';
import { IMAGE_URL } from '../chat/chat-schema.ts';

/** The fields of a request of OpenAI's Responses API that the schema checks. `decode-request.ts` checks the rest. */
export interface ResponsesBody extends RoutedBody {
  readonly input?: string | readonly JsonObject[] | null;
  readonly previous_response_id?: string | null;
  readonly store?: boolean | null;
  readonly background?: boolean | null;
  readonly instructions?: string | null;
  readonly max_output_tokens?: number | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly tools?: readonly JsonObject[] | null;
  readonly tool_choice?: string | JsonObject | null;
  readonly parallel_tool_calls?: boolean | null;
  readonly text?: JsonObject | null;
  readonly reasoning?: JsonObject | null;
  readonly include?: readonly string[] | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly prompt_cache_key?: string | null;
  readonly [field: string]: unknown;
}

const typed = (...types: readonly string[]) => ({ required: ['type'], properties: { type: { enum: types } } });
const text = { type: 'string' };
const word = { type: 'string', minLength: 1 };
const PART = {
  type: 'object',
  anyOf: [
    { required: ['text'], properties: { text }, not: typed('input_image', 'input_file', 'input_audio') },
    typed('refusal'),
    {
      required: ['type', 'image_url'],
      properties: {
        type: { const: 'input_image' },
        image_url: { type: 'string', pattern: IMAGE_URL },
      },
    },
    {
      properties: { type: { const: 'input_file' }, file_data: text, file_url: text },
      anyOf: [{ required: ['type', 'file_data'] }, { required: ['type', 'file_url'] }],
    },
    {
      required: ['type', 'input_audio'],
      properties: {
        type: { const: 'input_audio' },
        input_audio: { type: 'object', required: ['data', 'format'], properties: { data: text, format: text } },
      },
    },
  ],
};
const PARTS = { anyOf: [{ const: null }, text, { type: 'array', items: PART }] };
const MESSAGE = {
  required: ['role'],
  properties: { role: { enum: ['user', 'assistant', 'system', 'developer'] }, content: PARTS },
};

/** The items of a conversation that OpenAI has compacted, and of the wish for it. Only providers can read them. */
export const COMPACTION: ReadonlySet<string> = new Set(['compaction', 'compaction_summary', 'compaction_trigger']);

/**
 * Calls of hosted tools and what else OpenAI's own conversations have. Only their text is kept, so that a conversation
 * that began at another service can continue, and their types are named as left out.
 */
export const HOSTED: ReadonlySet<string> = new Set([
  'apply_patch_call',
  'apply_patch_call_output',
  'code_interpreter_call',
  ...COMPACTION,
  'computer_call',
  'computer_call_output',
  'configuration_update',
  'file_search_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'mcp_approval_request',
  'mcp_approval_response',
  'mcp_call',
  'mcp_list_tools',
  'program',
  'program_output',
  'shell_call',
  'shell_call_output',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
]);

const ITEMS = [
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'reasoning',
  'additional_tools',
  'item_reference',
  ...HOSTED,
];

const RULES = [
  {
    anyOf: [
      { ...MESSAGE, not: { required: ['type'] } },
      { required: ['id'], properties: { id: word }, not: { anyOf: [{ required: ['type'] }, { required: ['role'] }] } },
      typed(...ITEMS),
    ],
  },
  onlyIf(typed('message'), MESSAGE),
  onlyIf(typed('item_reference'), { required: ['id'], properties: { id: word } }),
  onlyIf(typed('function_call', 'custom_tool_call'), {
    required: ['call_id', 'name'],
    properties: { call_id: word, name: word },
  }),
  onlyIf(typed('function_call'), { required: ['arguments'], properties: { arguments: text } }),
  onlyIf(typed('function_call_output', 'custom_tool_call_output'), {
    required: ['call_id'],
    properties: { call_id: word, output: PARTS },
  }),
];

/** An item of the input. Which members it may have depends on its type, and `decode-request.ts` checks them. */
const itemSchema = {
  title: 'ResponseInputItem',
  type: 'object',
  properties: {
    type: { description: 'Such as `message` (the default), `function_call_output` or `item_reference`.' },
    role: { description: 'Of a message: `user`, `assistant`, `system` or `developer`.' },
    content: { description: 'Of a message: a text, or parts.' },
    id: { description: 'The id of the item. Of an `item_reference`: that of the item that it names.' },
  },
  additionalProperties: true,
  [MUST_BE]: 'an item such as a message',
  [DOCUMENTED]: { allOf: RULES },
} as const;

export function responsesSchema(itemsMax: number) {
  return {
    title: 'ResponseRequest',
    type: 'object',
    required: ['model', 'input'],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [{ model: EXAMPLE_MODEL, input: 'What is a tollgate?' }],
    [DOCUMENTED]: {
      allOf: [
        {
          not: {
            required: ['background', 'store'],
            properties: { background: { enum: [true] }, store: { enum: [false] } },
          },
        },
      ],
    },
    properties: {
      model: {
        ...nameSchema,
        description: 'As at `/chat/completions`: a model, `a2a/<agent>` or `mcp/<service>/<tool>`.',
        [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
      },
      input: {
        type: ['string', 'array'],
        minItems: 1,
        maxItems: itemsMax,
        items: itemSchema,
        description:
          'A text, or items. An item of type `item_reference` names an item of a kept response or of its request by its `id`.',
        [MUST_BE]: `a string or an array of 1 to ${itemsMax} items`,
        [DOCUMENTED]: { minLength: 1 },
      },
      previous_response_id: {
        type: ['string', 'null'],
        maxLength: 512,
        description:
          'Continues the conversation of a kept response. Its items are input of the model, and are paid as such.',
        [MUST_BE]: 'the id of a response',
      },
      store: {
        type: ['boolean', 'null'],
        description: 'Whether the response is kept for later requests. Default true, unless the gateway keeps none.',
        [MUST_BE]: 'true or false',
      },
      background: {
        type: ['boolean', 'null'],
        description:
          'Answer at once, and make the response although the client leaves. It is then asked for by its id. Default false.',
        [MUST_BE]: 'true or false',
      },
      instructions: {
        type: ['string', 'null'],
        description: 'Instructions that the model gets first.',
        [MUST_BE]: 'a string',
      },
      stream: {
        type: ['boolean', 'null'],
        description: 'Answer as server-sent events. Default false.',
        [MUST_BE]: 'true or false',
      },
      max_output_tokens: tokensField('Most tokens of the answer. It bounds what the call can cost.'),
      temperature: numberField(0, 2, 'Sampling temperature.'),
      top_p: numberField(0, 1, 'Nucleus sampling.'),
      tools: {
        type: ['array', 'null'],
        maxItems: 1024,
        items: {
          type: 'object',
          required: ['type'],
          properties: { type: { type: 'string', [MUST_BE]: 'the type of the tool, such as "function"' } },
          additionalProperties: true,
          [MUST_BE]: 'an object with a type',
        },
        description:
          'Functions and custom tools, also in namespaces: the client runs them. A tool of type `mcp` is a service of the gateway: the gateway calls its tools. Hosted tools are dropped for providers that do not support this API.',
        [MUST_BE]: 'an array of at most 1024 tools',
      },
      tool_choice: {
        type: ['string', 'object', 'null'],
        description: 'Which tool to use, or `auto`, `none`, `required`.',
        [MUST_BE]: 'a string or an object',
        [DOCUMENTED]: { pattern: '^(?:auto|none|required)$' },
      },
      parallel_tool_calls: {
        type: ['boolean', 'null'],
        description: 'Whether the model may ask for several tools at once.',
        [MUST_BE]: 'true or false',
      },
      text: objectField('`format` of the answer, and `verbosity`.'),
      reasoning: objectField('`effort`, and `summary` to get a summary of the thinking.'),
      include: {
        type: ['array', 'null'],
        items: { type: 'string' },
        description: '`reasoning.encrypted_content` asks for the thinking in encrypted form.',
        [MUST_BE]: 'an array of strings',
      },
      metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
      prompt_cache_key: {
        type: ['string', 'null'],
        maxLength: 256,
        description: 'Calls with the same key prefer the same provider.',
        [MUST_BE]: 'a string of at most 256 characters',
      },
      ...gatewayFields,
    },
  } as const;
}

export const responseAnswerSchema = {
  title: 'ResponseObject',
  type: 'object',
  required: ['id', 'object', 'status', 'model', 'output', 'usage'],
  additionalProperties: true,
  properties: {
    id: { type: 'string', description: 'Id of the response. The header `x-generation-id` has the id of the call.' },
    object: { type: 'string', const: 'response' },
    created_at: { type: 'integer', description: 'Epoch seconds.' },
    status: { type: 'string', enum: ['completed', 'incomplete', 'failed', 'in_progress'] },
    model: { type: 'string', description: 'The name that was called.' },
    store: { type: 'boolean', description: 'Whether the response is kept.' },
    previous_response_id: {
      type: ['string', 'null'],
      description: 'The response whose conversation it continues.',
    },
    output: {
      type: 'array',
      items: {
        title: 'ResponseOutputItem',
        type: 'object',
        required: ['type'],
        properties: {
          type: {
            type: 'string',
            description: 'Such as `message`, `reasoning`, `function_call` or `custom_tool_call`.',
          },
          id: { type: 'string' },
          status: { type: 'string', description: 'Such as `completed`.' },
          role: { type: 'string', description: 'Of a message: `assistant`.' },
          content: {
            type: 'array',
            description: 'Of a message: its parts.',
            items: {
              title: 'ResponseOutputPart',
              type: 'object',
              required: ['type'],
              properties: {
                type: { type: 'string', description: 'Such as `output_text` or `refusal`.' },
                text: { type: 'string', description: 'Of a text.' },
                refusal: { type: 'string', description: 'Of a refusal.' },
                annotations: { type: 'array', items: { type: 'object', additionalProperties: true } },
              },
              additionalProperties: true,
            },
          },
          call_id: { type: 'string', description: 'Of a tool call: the id that its result names.' },
          name: { type: 'string', description: 'Of a tool call.' },
          arguments: { type: 'string', description: 'Of the call of a function: JSON text.' },
          input: { type: 'string', description: 'Of the call of a custom tool.' },
        },
        additionalProperties: true,
      },
    },
    usage: {
      type: ['object', 'null'],
      additionalProperties: true,
      properties: {
        input_tokens: { type: 'integer', description: 'Tokens.' },
        output_tokens: { type: 'integer', description: 'Tokens.' },
        total_tokens: { type: 'integer', description: 'Tokens.' },
        cost: { type: 'number', description: 'USD charged.' },
      },
    },
  },
} as const;

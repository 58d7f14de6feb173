import { type ProviderPreferences, routingFields } from '#call';
import { EXAMPLE_MODEL, MUST_BE, nameSchema, numberField, objectField, tokensField } from '#http';

/**
 * The fields of a chat completion request that the gateway acts on or bills by. forwardedBody decides which other
 * fields go to a provider. An optional field that is null counts as absent, because clients send either.
 */
export interface ChatBody {
  model: string;
  messages: ChatMessage[];
  stream?: boolean | null;
  stream_options?: Record<string, unknown> | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  n?: number | null;
  tools?: ChatTool[] | null;
  response_format?: unknown;
  metadata?: Record<string, unknown> | null;
  models?: string[] | null;
  provider?: ProviderPreferences | null;
  session_id?: string | null;
  continue?: boolean | null;
  tollgate?: { task_id?: string | null; context_id?: string | null } | null;
  max_cost?: number | string | null;
  max_tool_rounds?: number | null;
  /** Only models that list `reasoning` get it, because this client asks every model to reason. */
  [REASONING_IF_LISTED]?: readonly string[];
  [field: string]: unknown;
}

export const asksUsage = ({ stream_options: options }: Pick<ChatBody, 'stream_options'>): boolean =>
  options?.['include_usage'] === true;

export const REASONING_IF_LISTED = Symbol('reasoning if listed');

/** A function of the client or, with type `mcp`, tools of a service. */
export interface ChatTool {
  type: string;
  function?: { name: string; [field: string]: unknown };
  service?: string;
  allowed_tools?: string[] | null;
  disallowed_tools?: string[] | null;
  [field: string]: unknown;
}

export interface ChatMessage {
  role: string;
  content?: string | ContentPart[] | null;
  [field: string]: unknown;
}

export interface ContentPart {
  type: string;
  text?: string;
  image_url?: { url: string; [field: string]: unknown };
  [field: string]: unknown;
}

const MODEL_RIGHT = 'the name of a model: 1 to 256 characters without control characters';

export function chatSchema(messagesMax: number) {
  return {
    title: 'ChatCompletionRequest',
    type: 'object',
    required: ['messages'],
    // If a body has only `models`, the first of them becomes `model` before the check. `required` comes first: see
    // messageSchema.
    anyOf: [
      { required: ['model'], properties: { model: { [MUST_BE]: MODEL_RIGHT } } },
      { required: ['models'], properties: { models: { type: 'array', minItems: 1, [MUST_BE]: MODEL_RIGHT } } },
    ],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [{ model: EXAMPLE_MODEL, messages: [{ role: 'user', content: 'What is a tollgate?' }] }],
    properties: {
      model: {
        ...nameSchema,
        description:
          'A service name, optionally with `:floor` (cheapest provider) or `:nitro` (fastest), or the direct form `<provider_pubkey>:<model_name>`. ' +
          '`a2a/<agent>` and `mcp/<service>/<tool>` call an agent or a tool instead.',
        [MUST_BE]: MODEL_RIGHT,
      },
      messages: {
        type: 'array',
        minItems: 1,
        maxItems: messagesMax,
        items: messageSchema,
        description: 'The conversation so far.',
        [MUST_BE]: `an array of 1 to ${messagesMax} messages`,
      },
      stream: {
        type: ['boolean', 'null'],
        description: 'Answer as server-sent events. Default false.',
        [MUST_BE]: 'true or false',
      },
      stream_options: objectField('Options of a streamed answer. Usage is always sent.', {
        properties: { include_usage: { type: ['boolean', 'null'], [MUST_BE]: 'true or false' } },
      }),
      ...generationFields,
      ...toolFields,
      user: {
        type: ['string', 'null'],
        maxLength: 1024,
        description: 'Your identifier of the end user; forwarded.',
        [MUST_BE]: 'a string of at most 1024 characters',
      },
      metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
      ...gatewayFields,
    },
  } as const;
}

/** The request fields that `/models` lists for every chat model, besides those that its own providers list. */
export const SUPPORTED_PARAMETERS: readonly string[] = [
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'n',
  'parallel_tool_calls',
  'presence_penalty',
  'reasoning_effort',
  'response_format',
  'seed',
  'stop',
  'stream',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
];

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
/** Anchored, so that the check reads only the first bytes of a data URL, which may have parameters. */
export const IMAGE_URL =
  '^(?:[hH][tT][tT][pP][sS]://[^\\s]|' +
  '[dD][aA][tT][aA]:[iI][mM][aA][gG][eE]/[a-zA-Z0-9.+-]{1,64}(?:;[a-zA-Z0-9_.+-]{1,64}=[a-zA-Z0-9_.+-]{1,64}){0,4}' +
  ';[bB][aA][sS][eE]64,[A-Za-z0-9+/_-])';

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

const messageSchema = {
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

const CHOICE = '"auto", "none", "required" or an object such as {"type": "function", "function": {"name": "…"}}';

const toolNames = {
  type: ['array', 'null'],
  maxItems: 256,
  items: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of a tool' },
  [MUST_BE]: 'an array of at most 256 names of tools',
};

const toolFields = {
  tools: {
    type: ['array', 'null'],
    maxItems: 1024,
    items: {
      type: 'object',
      required: ['type'],
      properties: {
        type: { type: 'string', [MUST_BE]: 'the type of the tool, such as "function"' },
        function: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of the function' },
          },
          [MUST_BE]: 'an object with a name',
        },
        service: {
          ...nameSchema,
          description: 'With type `mcp`: the service whose tools the gateway calls for the model.',
          [MUST_BE]: 'the name of a tool service',
        },
        allowed_tools: {
          ...toolNames,
          description: 'With type `mcp`: the tools of the service that the model may call. Default all.',
        },
        disallowed_tools: {
          ...toolNames,
          description: 'With type `mcp`: tools of the service that the model may not call. Default none.',
        },
      },
      allOf: [
        {
          anyOf: [
            {
              required: ['service'],
              properties: { service: { [MUST_BE]: 'the name of a tool service, whose tools the gateway calls' } },
            },
            { properties: { type: { not: { const: 'mcp' } } } },
          ],
        },
        {
          anyOf: [
            { required: ['function'], properties: { function: { [MUST_BE]: 'an object with a name' } } },
            { properties: { type: { not: { const: 'function' } } } },
          ],
        },
      ],
      [MUST_BE]:
        'an object such as {"type": "function", "function": {"name": "…"}}, or {"type": "mcp", "service": "…"}',
    },
    description:
      'Tools that the model may ask for. The client calls a `function`. The gateway calls the tools of a service that has type `mcp` here. ' +
      'Each of these calls is billed separately.',
    [MUST_BE]: 'an array of at most 1024 tools',
  },
  tool_choice: {
    anyOf: [
      { enum: ['auto', 'none', 'required', 'any', null], [MUST_BE]: CHOICE },
      {
        type: 'object',
        required: ['type'],
        properties: { type: { type: 'string' } },
      },
    ],
    description:
      'Which tool to use: "auto", "none", "required", or a tool as {"type": "function", "function": {"name": "…"}}. Some providers say "any" for "required".',
    [MUST_BE]: CHOICE,
  },
} as const;

/** The most stop sequences that OpenAI's API takes. */
export const STOPS_MAX = 4;

export const generationFields = {
  temperature: numberField(0, 2, 'Sampling temperature. When it is absent the provider’s own default applies.'),
  top_p: numberField(0, 1, 'Nucleus sampling. When it is absent the provider’s own default applies.'),
  presence_penalty: numberField(-2, 2, 'Penalty on tokens that have appeared.'),
  frequency_penalty: numberField(-2, 2, 'Penalty on tokens by how often they have appeared.'),
  max_tokens: tokensField('Most tokens of one completion. It bounds what the call can cost.'),
  max_completion_tokens: tokensField('The newer name of max_tokens. If both are given, the lower one counts.'),
  n: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: 128,
    description: 'Completions to make. Default 1.',
    [MUST_BE]: 'an integer from 1 to 128',
  },
  // Not checked, because a number that a double cannot hold is an object here.
  seed: { description: 'An integer. The same seed makes the same completion, as far as the model can. Forwarded.' },
  stop: {
    type: ['string', 'array', 'null'],
    maxItems: STOPS_MAX,
    items: { type: 'string', [MUST_BE]: 'a string' },
    description: `Up to ${STOPS_MAX} sequences that end a completion.`,
    [MUST_BE]: `a string or an array of at most ${STOPS_MAX} strings`,
  },
} as const;

export const TOOL_ROUNDS_DEFAULT = 8;
const TOOL_ROUNDS_MAX = 32;

/** A member of an earlier reply that a client sends back. */
const echoed = { description: 'Of the earlier reply. Not read.' };
const taskName = {
  type: ['string', 'null'],
  minLength: 1,
  maxLength: 512,
  [MUST_BE]: 'a string of 1 to 512 characters',
};

export const gatewayFields = {
  ...routingFields,
  continue: {
    type: ['boolean', 'null'],
    description:
      'Whether the next of `models` that takes the beginning of an answer goes on with a stream that breaks off. Default: as the API key says, else as the model, `false` for most. Not forwarded.',
    [MUST_BE]: 'true or false',
  },
  max_tool_rounds: {
    type: ['integer', 'null'],
    minimum: 1,
    maximum: TOOL_ROUNDS_MAX,
    description: `How many times the model may ask for tools that the gateway calls. Then it must answer. Default ${TOOL_ROUNDS_DEFAULT}. Not forwarded.`,
    [MUST_BE]: `an integer from 1 to ${TOOL_ROUNDS_MAX}`,
  },
  tollgate: objectField(
    'The task of an agent that this request continues. The field `tollgate` of an earlier reply has its ids. Not forwarded.',
    {
      title: 'TaskOfAgent',
      properties: {
        task_id: taskName,
        context_id: taskName,
        state: echoed,
        cost_pending: echoed,
        note: echoed,
        messages: echoed,
        tool_calls: echoed,
      },
      additionalProperties: false,
    },
  ),
} as const;

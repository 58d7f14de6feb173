import { MUST_BE } from '#gateway';
import { EXAMPLE_MODEL } from '#pages';

/**
 * A chat completion request as far as the gateway acts on it or bills by it. forwardedBody says which of the other
 * fields go to a provider. An optional field that is null counts as absent, as clients send both.
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
  tollgate?: { task_id?: string | null; context_id?: string | null } | null;
  max_cost?: number | string | null;
  max_tool_rounds?: number | null;
  [field: string]: unknown;
}

/** A function of the client's, or with type `mcp` tools of a service. */
export interface ChatTool {
  type: string;
  function?: { name: string; [field: string]: unknown };
  service?: string;
  allowed_tools?: string[] | null;
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

/** The body's `provider` object: how the consumer wants its provider chosen. */
export interface ProviderPreferences {
  order?: string[] | null;
  only?: string[] | null;
  ignore?: string[] | null;
  allow_fallbacks?: boolean | null;
  sort?: 'price' | 'latency' | 'throughput' | null;
  max_price?: {
    prompt?: number | string | null;
    completion?: number | string | null;
    image?: number | string | null;
  } | null;
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function'];
/** Types of content parts. A part of another type has no price, so it goes to no provider. */
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
const SORTS = ['price', 'latency', 'throughput'];
export const FALLBACKS_MAX = 16;
/** Rounds of tools that the gateway calls for a model. */
export const TOOL_ROUNDS_DEFAULT = 8;
export const TOOL_ROUNDS_MAX = 32;

/** Anchored, so that only the first bytes of a data URL are looked at. */
const IMAGE_URL = '^(?:[hH][tT][tT][pP][sS]://[^\\s]|data:image/[a-zA-Z0-9.+-]{1,64};base64,[A-Za-z0-9+/_-])';

const NAME = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\u0000-\\u001f\\u007f]+$' };

const MODEL_RIGHT = 'the name of a model: 1 to 256 characters without control characters';

const between = (minimum: number, maximum: number, about: string) => ({
  type: ['number', 'null'],
  minimum,
  maximum,
  description: about,
  [MUST_BE]: `a number from ${minimum} to ${maximum}`,
});
const tokens = (about: string) => ({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: about,
  [MUST_BE]: `an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
});
const names = (about: string) => ({
  type: ['array', 'null'],
  maxItems: 64,
  items: { ...NAME, [MUST_BE]: 'the id or name of a provider' },
  description: about,
  [MUST_BE]: 'an array of at most 64 provider ids or names',
});
const object = (about: string, rest: Record<string, unknown> = {}) => ({
  type: ['object', 'null'],
  description: about,
  [MUST_BE]: 'an object',
  ...rest,
});
/** What a client may send back of a reply as it came. */
const echoed = { description: 'Of the earlier reply. Not read.' };
const taskName = {
  type: ['string', 'null'],
  minLength: 1,
  maxLength: 512,
  [MUST_BE]: 'a string of 1 to 512 characters',
};
const price = { type: ['number', 'string', 'null'], [MUST_BE]: 'a price in USD, such as 0.15 or "0.15"' };

const PART = {
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
  // What is required comes first, as the first branch that fails is the one that is reported.
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

const MESSAGE = {
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
  },
  // An assistant message may be nothing but tool calls, and a function result may be null.
  anyOf: [
    {
      required: ['content'],
      properties: { content: { type: ['string', 'array'], [MUST_BE]: 'a string or an array of parts' } },
    },
    { properties: { role: { enum: ['assistant', 'function'] } } },
  ],
  [MUST_BE]: 'an object with role and content',
};

/** JSON schema of `POST /chat/completions`: what requests are checked against, and what the reference page shows. */
export function chatSchema(messagesMax: number) {
  return {
    type: 'object',
    required: ['messages'],
    // Where `models` stands alone its first becomes `model` before the check. What is required comes first, as in PART.
    anyOf: [
      { required: ['model'], properties: { model: { [MUST_BE]: MODEL_RIGHT } } },
      { required: ['models'], properties: { models: { type: 'array', minItems: 1, [MUST_BE]: MODEL_RIGHT } } },
    ],
    additionalProperties: true,
    [MUST_BE]: 'a JSON object',
    examples: [{ model: EXAMPLE_MODEL, messages: [{ role: 'user', content: 'What is a tollgate?' }] }],
    properties: {
      model: {
        ...NAME,
        description:
          'A service name, optionally with `:floor` (cheapest provider) or `:nitro` (fastest), or the direct form `<provider_pubkey>:<model_name>`. ' +
          '`a2a/<agent>` and `mcp/<service>/<tool>` ask an agent or a tool instead.',
        [MUST_BE]: MODEL_RIGHT,
      },
      messages: {
        type: 'array',
        minItems: 1,
        maxItems: messagesMax,
        items: MESSAGE,
        description: 'The conversation so far.',
        [MUST_BE]: `an array of 1 to ${messagesMax} messages`,
      },
      stream: {
        type: ['boolean', 'null'],
        description: 'Answer as server-sent events. Default false.',
        [MUST_BE]: 'true or false',
      },
      stream_options: object('Options of a streamed answer. Usage is sent whether it is asked for or not.', {
        properties: { include_usage: { type: ['boolean', 'null'], [MUST_BE]: 'true or false' } },
      }),
      temperature: between(0, 2, 'Sampling temperature. When it is absent the provider’s own default applies.'),
      top_p: between(0, 1, 'Nucleus sampling. When it is absent the provider’s own default applies.'),
      presence_penalty: between(-2, 2, 'Penalty on tokens that have appeared.'),
      frequency_penalty: between(-2, 2, 'Penalty on tokens by how often they have appeared.'),
      max_tokens: tokens('Most tokens of one completion. It bounds what the call can cost.'),
      max_completion_tokens: tokens('The newer name of max_tokens. When both are given the lower one counts.'),
      n: {
        type: ['integer', 'null'],
        minimum: 1,
        maximum: 128,
        description: 'Completions to make. Default 1.',
        [MUST_BE]: 'an integer from 1 to 128',
      },
      stop: {
        type: ['string', 'array', 'null'],
        maxItems: 4,
        items: { type: 'string', [MUST_BE]: 'a string' },
        description: 'Up to 4 sequences that end a completion.',
        [MUST_BE]: 'a string or an array of at most 4 strings',
      },
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
              ...NAME,
              description: 'With type `mcp`: the service whose tools the gateway calls for the model.',
              [MUST_BE]: 'the name of a tool service',
            },
            allowed_tools: {
              type: ['array', 'null'],
              maxItems: 256,
              items: { type: 'string', minLength: 1, maxLength: 256, [MUST_BE]: 'the name of a tool' },
              description: 'With type `mcp`: those of its tools that the model may call. Default all.',
              [MUST_BE]: 'an array of at most 256 names of tools',
            },
          },
          anyOf: [
            {
              required: ['service'],
              properties: { service: { [MUST_BE]: 'the name of a tool service, whose tools the gateway calls' } },
            },
            { properties: { type: { not: { const: 'mcp' } } } },
          ],
          [MUST_BE]:
            'an object such as {"type": "function", "function": {"name": "…"}}, or {"type": "mcp", "service": "…"}',
        },
        description:
          'Tools that the model may ask for. A `function` is called by the client; the tools of a service that is named with type `mcp` are called by the gateway, ' +
          'each call billed for itself, until the model answers.',
        [MUST_BE]: 'an array of at most 1024 tools',
      },
      tool_choice: {
        type: ['string', 'object', 'null'],
        description: 'Which tool to use, or "auto", "none", "required".',
        [MUST_BE]: 'a string or an object',
      },
      user: {
        type: ['string', 'null'],
        maxLength: 1024,
        description: 'Your identifier of the end user; forwarded.',
        [MUST_BE]: 'a string of at most 1024 characters',
      },
      metadata: object('Key and value pairs for the logs. Not forwarded to the provider.'),
      models: {
        type: ['array', 'null'],
        maxItems: FALLBACKS_MAX,
        items: { ...NAME, [MUST_BE]: 'the name of a model' },
        description:
          'Models to fall back to, in this order. Without `model` the first of them is the model. Names that nobody offers are skipped. Not forwarded.',
        [MUST_BE]: `an array of at most ${FALLBACKS_MAX} model names`,
      },
      provider: object('How the provider is chosen. Not forwarded. A member of another name is refused.', {
        additionalProperties: false,
        properties: {
          order: names('Providers to try first, in this order.'),
          only: names('Providers that may serve the call.'),
          ignore: names('Providers that may not.'),
          allow_fallbacks: {
            type: ['boolean', 'null'],
            description: 'Whether a provider outside of `order` may serve. Default true.',
            [MUST_BE]: 'true or false',
          },
          sort: {
            enum: [...SORTS, null],
            description: 'What the best provider is best at.',
            [MUST_BE]: `one of ${SORTS.join(', ')}`,
          },
          max_price: object('Highest acceptable prices: USD per 1M tokens, and per input image.', {
            additionalProperties: false,
            properties: { prompt: price, completion: price, image: price },
          }),
        },
      }),
      session_id: {
        type: ['string', 'null'],
        maxLength: 256,
        description:
          'Calls of one session prefer the provider that served the last one (header: x-session-id). For an agent it names the context. Not forwarded.',
        [MUST_BE]: 'a string of at most 256 characters',
      },
      max_cost: {
        type: ['number', 'string', 'null'],
        description:
          'Most that the request may cost in USD, with all that is called for it (header: x-max-cost). Not forwarded.',
        [MUST_BE]: 'an amount in USD, such as 0.05 or "0.05"',
      },
      max_tool_rounds: {
        type: ['integer', 'null'],
        minimum: 1,
        maximum: TOOL_ROUNDS_MAX,
        description: `How often the model may ask for tools that the gateway calls before it has to answer. Default ${TOOL_ROUNDS_DEFAULT}. Not forwarded.`,
        [MUST_BE]: `an integer from 1 to ${TOOL_ROUNDS_MAX}`,
      },
      tollgate: object(
        'The task of an agent to go on with, as an earlier reply told it in its own `tollgate`. Not forwarded.',
        {
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
    },
  } as const;
}

/** Request fields that the gateway knows and checks; what `/models` lists beside those that commonly pass through. */
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

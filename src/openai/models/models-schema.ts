import { CHAT_MODALITIES, chargedPerCall, MODEL_KINDS } from '#config/model-kinds';
import { healthProperties, pricingSchema, stopsProperties } from '#catalog';
import { DOCUMENTED, MUST_BE } from '#http';

/* Requests for pages of models as the reference describes them. */

const TYPES = ['chat', 'image', 'video', 'all'] as const;
const FILTERS = ['models', 'agents'] as const;
export type ListingType = (typeof TYPES)[number];
export type ListingFilter = (typeof FILTERS)[number];

/** The kinds of output that a model can have here, and the ones that clients of OpenRouter's API ask for. */
const KINDS = [...CHAT_MODALITIES, ...Object.keys(MODEL_KINDS), 'decisions'];

/** Most entries of one page. */
export const LIMIT_MAX = 1_000;

export const querySchema = {
  type: 'object',
  additionalProperties: true,
  properties: {
    type: {
      type: 'string',
      enum: TYPES,
      description:
        'List only models of this kind. The lists of other kinds, `agents` and `tools` are then empty. With `all`, `data` has models of embeddings too. Default: chat models, agents and tools.',
    },
    filter: {
      type: 'string',
      enum: FILTERS,
      description: '`models` leaves agents and tools out; `agents` leaves models out.',
    },
    output_modalities: {
      type: 'string',
      pattern: `^(?:all|(?:${KINDS.join('|')})(?:,(?:${KINDS.join('|')}))*)$`,
      description:
        '`data` has the models that make one of these kinds of output, separated by commas, or all models: `image,video`, `embeddings`, `all`. Not together with `type`. Default: chat models; below `/v1` all.',
      [MUST_BE]: `all, or some of ${KINDS.join(', ')}, separated by commas`,
    },
    offset: { type: 'integer', minimum: 0, maximum: 1_000_000, description: 'Entries of `data` to skip. Default 0.' },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: LIMIT_MAX,
      description: "Most entries of `data`. Default: the operator's models, and up to 2,000 with those of others.",
    },
    after_id: {
      type: 'string',
      maxLength: 256,
      description: 'With the header `anthropic-version`: the page after this model.',
    },
    before_id: {
      type: 'string',
      maxLength: 256,
      description: 'With the header `anthropic-version`: the page before this model.',
    },
  },
} as const;

/**
 * `Vary` of a list of models: clients of other APIs get it in their own form, and a key with limits its own part of it.
 */
export const LIST_VARIES_BY = 'anthropic-version, x-goog-api-key, x-api-key, authorization';

export const headersSchema = {
  type: 'object',
  properties: {
    'anthropic-version': {
      type: 'string',
      description: "With this header the answer is in the shape of Anthropic's API.",
      [DOCUMENTED]: { pattern: '^[\\x20-\\x7e]*$' },
    },
  },
} as const;

export const nameParams = {
  type: 'object',
  properties: { '*': { type: 'string', description: 'The name of the model' } },
} as const;

export const partsParams = {
  type: 'object',
  properties: {
    author: { type: 'string', description: 'The name of the model up to its slash' },
    slug: { type: 'string', description: 'The rest of the name' },
  },
} as const;

/* The pages of models as the reference describes them. */

const text = { type: 'string' } as const;
const texts = { type: 'array', items: text } as const;
const tokens = { type: ['integer', 'null'], description: 'Tokens.' } as const;

const architectureProperties = {
  modality: { type: 'string', description: 'Input and output, such as `text+image->text`.' },
  input_modalities: texts,
  output_modalities: texts,
} as const;

const own = (owners: string) =>
  ({ type: 'string', description: `Present if ${owners} have their own price.` }) as const;

const ownPrices = {
  input_cache_read: own('prompt tokens read from a cache'),
  input_cache_write: own('prompt tokens written to a cache'),
  input_cache_write_1h: own('prompt tokens written to a cache for an hour'),
  audio: own('prompt tokens of sound'),
  input_audio_cache: own('prompt tokens of sound read from a cache'),
  internal_reasoning: own('completion tokens of reasoning'),
  audio_output: own('completion tokens of sound'),
  image_output: own('completion tokens of pictures'),
  web_search: { type: 'string', description: 'Per web search that the provider runs.' },
  character: { type: 'string', description: 'Per character that is spoken.' },
  second: { type: 'string', description: 'Per second of sound that is transcribed.' },
  request: {
    type: 'string',
    description: `Per ${chargedPerCall((unit, kind) => `${unit} of a ${kind} model`).join(', or per ')}.`,
  },
} as const;

const unitPricingSchema = {
  title: 'UnitPricing',
  type: 'object',
  description: 'USD as decimal texts: per token, and per input image.',
  required: ['prompt', 'completion', 'image'],
  properties: {
    prompt: text,
    completion: text,
    image: text,
    ...ownPrices,
    overrides: {
      type: 'array',
      description:
        'Present if long prompts have other prices. The last entry whose `min_prompt_tokens` the prompt reaches, cached tokens included, has the prices of the whole request.',
      items: {
        type: 'object',
        required: ['min_prompt_tokens'],
        properties: {
          min_prompt_tokens: { type: 'integer' },
          prompt: text,
          completion: text,
          image: text,
          ...ownPrices,
        },
      },
    },
  },
} as const;

const modelProperties = {
  id: { type: 'string', description: 'The name that the model is called by.' },
  object: { type: 'string', const: 'model' },
  created: { type: 'integer', description: 'Epoch seconds at which it was first listed.' },
  canonical_slug: { type: 'string', description: 'The same as `id`.' },
  owned_by: { type: 'string', description: 'Name of the first provider.' },
  name: { type: 'string', description: 'The same as `id`.' },
  display_name: text,
  description: text,
  providers: {
    type: 'array',
    items: {
      type: 'object',
      required: ['id', 'name', 'pricing'],
      properties: { id: { type: 'string', description: 'Public key.' }, name: text, pricing: pricingSchema },
    },
    description: 'All providers, with prices in USD per 1M tokens.',
  },
  context_length: {
    type: ['integer', 'null'],
    description: 'The most tokens that a provider declares for prompt and answer together; null if none declares any.',
  },
  architecture: { type: 'object', required: Object.keys(architectureProperties), properties: architectureProperties },
  pricing: {
    ...unitPricingSchema,
    description: 'Prices of the cheapest provider, in USD as decimal texts: per token, and per input image.',
  },
  supported_parameters: { ...texts, description: 'Fields of a request that have an effect.' },
  top_provider: {
    type: 'object',
    description: 'The cheapest provider.',
    required: ['context_length', 'max_completion_tokens', 'is_moderated'],
    properties: { context_length: tokens, max_completion_tokens: tokens, is_moderated: { type: 'boolean' } },
  },
  links: {
    type: 'object',
    required: ['details'],
    properties: { details: { type: 'string', description: 'Path of the page that lists its providers.' } },
  },
  default_parameters: { type: 'null', description: 'Not known here.' },
  per_request_limits: { type: 'null', description: '`context_length` is the only limit.' },
  supported_voices: { type: 'null', description: 'Not known here.' },
} as const;

export const modelSchema = {
  title: 'Model',
  type: 'object',
  required: Object.keys(modelProperties),
  properties: modelProperties,
} as const;

const anthropicProperties = {
  type: { type: 'string', const: 'model' },
  id: text,
  display_name: text,
  created_at: { type: 'string', description: 'RFC 3339.' },
  lifecycle: { type: 'string', const: 'active' },
  max_input_tokens: { ...tokens, description: 'The most tokens of a prompt that a provider declares.' },
  max_tokens: { ...tokens, description: 'The most tokens of an answer that a provider declares.' },
  capabilities: { type: 'null', description: 'Not known here.' },
  deprecated_at: { type: 'null', description: 'Not known here.' },
  line: { type: 'null', description: 'Not known here.' },
  retires_at: { type: 'null', description: 'Not known here.' },
} as const;
const anthropicModelSchema = {
  title: 'AnthropicModel',
  type: 'object',
  required: Object.keys(anthropicProperties),
  properties: anthropicProperties,
} as const;

const anthropicListSchema = {
  title: 'AnthropicModelList',
  type: 'object',
  description: 'With the header `anthropic-version`.',
  required: ['data', 'has_more', 'first_id', 'last_id'],
  properties: {
    data: { type: 'array', items: anthropicModelSchema },
    has_more: { type: 'boolean' },
    first_id: { type: ['string', 'null'] },
    last_id: { type: ['string', 'null'] },
  },
} as const;

const serviceProperties = {
  id: text,
  object: { type: 'string', enum: ['agent', 'tool'] },
  created: { type: 'integer', description: 'Epoch seconds.' },
  owned_by: text,
  name: text,
  display_name: text,
  description: text,
  providers: { ...texts, description: 'Names.' },
  pricing: pricingSchema,
} as const;
const serviceSchema = {
  title: 'ListedService',
  type: 'object',
  required: Object.keys(serviceProperties),
  properties: serviceProperties,
} as const;

const media = (constraints: readonly string[], more: object = {}) => ({
  type: 'object',
  required: ['id', 'name', 'providers', 'supported_params', 'constraints', 'pricing'],
  properties: {
    id: text,
    name: text,
    providers: { ...texts, description: 'Names.' },
    ...more,
    supported_params: texts,
    constraints: { type: 'object', properties: Object.fromEntries(constraints.map((name) => [name, texts])) },
    pricing: pricingSchema,
  },
});

const ownListSchema = {
  title: 'ModelList',
  type: 'object',
  required: ['object', 'data', 'total_count', 'links', 'agents', 'image_models', 'video_models', 'tools'],
  properties: {
    object: { type: 'string', const: 'list' },
    data: {
      type: 'array',
      items: modelSchema,
      description: 'Models, by name: chat models, or what `output_modalities` selects.',
    },
    total_count: { type: 'integer', description: 'Number of entries without `offset` and `limit`.' },
    links: {
      type: 'object',
      required: ['next'],
      properties: { next: { type: ['string', 'null'], description: 'Path of the next page.' } },
    },
    agents: { type: 'array', items: serviceSchema },
    image_models: { type: 'array', items: media(['aspect_ratios', 'formats']) },
    video_models: { type: 'array', items: media(['resolutions', 'durations', 'aspect_ratios'], { model_type: text }) },
    tools: { type: 'array', items: serviceSchema },
    models: {
      type: 'array',
      maxItems: 0,
      items: {},
      description:
        'Empty, with the parameter `client_version` alone: Codex sends it, and takes no list without this member.',
    },
  },
} as const;

export const listingSchema = { description: 'The list.', anyOf: [ownListSchema, anthropicListSchema] } as const;

export const entrySchema = { description: 'The model.', anyOf: [modelSchema, anthropicModelSchema] } as const;

export const countSchema = {
  type: 'object',
  required: ['data'],
  properties: { data: { type: 'object', required: ['count'], properties: { count: { type: 'integer' } } } },
} as const;

const { status: _, ...standing } = healthProperties;
const notMeasured = { type: 'null', description: 'Not measured here.' } as const;
const endpointProperties = {
  tag: { type: 'string', description: 'The name of the provider in small letters, digits and hyphens.' },
  model_id: text,
  model_name: text,
  name: text,
  provider_name: text,
  provider_id: { type: 'string', description: 'Public key.' },
  context_length: {
    type: 'integer',
    description:
      'Tokens that locks are computed from: what the provider declares, else a default. 0 for images and videos.',
  },
  max_completion_tokens: tokens,
  max_prompt_tokens: { type: 'null', description: '`context_length` is the only limit.' },
  quantization: { type: ['string', 'null'], description: 'Format of the weights, as declared; null if it is not.' },
  data_collection: {
    type: 'string',
    enum: ['allow', 'deny'],
    description: 'With `deny` it declares that nobody keeps what requests contain for other purposes.',
  },
  zdr: { type: 'boolean', description: 'Whether it declares that nothing is kept after the answer.' },
  region: { type: ['string', 'null'], description: 'Where it declares to process requests; null if it declares none.' },
  ...stopsProperties,
  pricing: unitPricingSchema,
  status: {
    type: 'integer',
    enum: [0, -1, -2],
    description: '`health` as a number: 0 is `healthy`, -1 `cooling_down`, -2 `away`.',
  },
  health: healthProperties.status,
  ...standing,
  latency_last_30m: notMeasured,
  throughput_last_30m: notMeasured,
  uptime_last_5m: notMeasured,
  uptime_last_30m: notMeasured,
  uptime_last_1d: notMeasured,
  supports_implicit_caching: { type: 'boolean', const: false },
  supports_tool_choice: {
    type: 'object',
    description: 'Values of `tool_choice` that are passed on.',
    properties: {
      auto: { type: 'boolean' },
      none: { type: 'boolean' },
      required: { type: 'boolean' },
      function: { type: 'boolean' },
    },
  },
  supported_parameters: texts,
} as const;

export const endpointsSchema = {
  title: 'ModelEndpoints',
  description: 'The model with all its providers.',
  type: 'object',
  required: ['data'],
  properties: {
    data: {
      type: 'object',
      required: ['id', 'name', 'created', 'description', 'architecture', 'endpoints'],
      properties: {
        id: text,
        name: { type: 'string', description: 'To display.' },
        created: { type: 'integer', description: 'Epoch seconds.' },
        description: text,
        architecture: {
          type: 'object',
          properties: { ...architectureProperties, tokenizer: { type: 'null' }, instruct_type: { type: 'null' } },
        },
        endpoints: {
          type: 'array',
          items: {
            type: 'object',
            required: Object.keys(endpointProperties),
            properties: {
              ...endpointProperties,
              image_tokens_max: {
                type: 'integer',
                description: 'Most tokens of an image in a prompt, as the provider declares it.',
              },
              hidden_reasoning_tokens: {
                type: 'object',
                description: 'Hidden reasoning tokens, as the provider declares them.',
              },
            },
          },
        },
      },
    },
  },
} as const;

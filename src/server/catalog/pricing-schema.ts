/* The schema of a service's prices, as lists and pages show them. */

const usd = (description: string) => ({ type: ['number', 'null'], description }) as const;

const modelPricing = {
  prompt: usd('USD per 1M prompt tokens'),
  completion: usd('USD per 1M completion tokens'),
} as const;

const number = (description: string) => ({ type: 'number', description }) as const;

/** Prices of parts of a model's tokens, and of searches. Each is present only where it has its own price. */
const partPricing = {
  input_cache_read: number('USD per 1M prompt tokens read from a cache, where they have their own price'),
  input_cache_write: number('USD per 1M prompt tokens written to a cache, where they have their own price'),
  input_cache_write_1h: number('USD per 1M prompt tokens written to a cache for an hour'),
  audio: number('USD per 1M prompt tokens of sound'),
  input_audio_cache: number('USD per 1M prompt tokens of sound read from a cache'),
  internal_reasoning: number('USD per 1M completion tokens of reasoning'),
  audio_output: number('USD per 1M completion tokens of sound'),
  image_output: number('USD per 1M completion tokens of pictures'),
  web_search: number('USD per web search that the provider runs'),
  character: number('USD per 1M characters that are spoken'),
  per_minute: number('USD per minute of sound that is transcribed'),
} as const;

const tierPricing = {
  prompt: number('USD per 1M prompt tokens'),
  completion: number('USD per 1M completion tokens'),
  image: number('USD per input image'),
  ...partPricing,
} as const;

const tiersSchema = {
  type: 'array',
  description: 'Prices of the whole request if its prompt has more than `above` tokens, those of a cache included',
  items: {
    title: 'PriceTier',
    type: 'object',
    required: ['above'],
    properties: { above: { type: 'integer' }, ...tierPricing },
  },
} as const;

const serviceTiersSchema = {
  type: 'object',
  description: 'Prices of calls with `service_tier`, by its name',
  additionalProperties: {
    title: 'ServiceTierPrice',
    type: 'object',
    properties: { ...tierPricing, tiers: tiersSchema },
  },
} as const;

const pricesByName = (description: string) =>
  ({ type: 'object', additionalProperties: { type: 'number' }, description }) as const;

/** The members of `pricing` depend on the primitive. */
export const pricingSchema = {
  title: 'Pricing',
  type: 'object',
  description:
    'Models: `prompt`, `completion`, `image`, prices of parts such as `input_cache_read`, `tiers`, `service_tiers`. Tools: `per_call`, `per_second`, `prompt`, `completion`, `per_call_max`, `tools`. Agents: `per_call` or `per_task`, `per_second`, `prompt`, `completion`, `per_call_max`, `nested_max`. Images: `generation`, `prompt`, `resolutions`, `variants`. Videos: `per_second`, `base`, `audio_multiplier`',
  properties: {
    ...modelPricing,
    image: usd('USD per input image'),
    ...partPricing,
    tiers: tiersSchema,
    service_tiers: serviceTiersSchema,
    per_call: usd('USD per call, of agents per message'),
    per_task: usd('USD per task, whatever the number of its messages'),
    per_call_max: { type: 'number', description: 'Highest price in USD of a call that is charged by use' },
    nested_max: {
      type: 'number',
      description: 'USD that the agent may spend on its own calls in the name of the consumer',
    },
    tools: pricesByName('USD per call of those tools that cost something else than `per_call`, by name'),
    generation: { type: 'number', description: 'USD per image' },
    resolutions: pricesByName('USD per image in those resolution tiers that cost something else than `generation`'),
    variants: pricesByName(
      'USD per image in those tiers and qualities that cost something else than the tier, such as `1K/high`',
    ),
    per_second: {
      type: ['number', 'object'],
      // Named, because generators for Java make no class of an object without names.
      properties: { '480p': { type: 'number' }, '720p': { type: 'number' }, '1080p': { type: 'number' } },
      additionalProperties: { type: 'number' },
      description: 'USD per second; of videos by resolution',
    },
    edit: { type: 'number', description: 'USD per edited image, where edits have their own price' },
    input_image: { type: 'number', description: 'USD per image to edit, where edits have their own price' },
    base: { type: 'number', description: 'USD per video, on top of its seconds' },
    audio_multiplier: { type: 'number', description: 'Price factor of a second with sound' },
  },
} as const;

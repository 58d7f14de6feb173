import { flagsSchema, standingProperties } from './standing.ts';

/* The catalogue's pages as the reference describes them. */

const primitivesSchema = { type: 'array', items: { type: 'string', enum: ['model', 'tool', 'agent', 'image', 'video'] } } as const;

const statusSchema = {
  type: 'string',
  enum: ['healthy', 'degraded', 'down', 'away'],
  description:
    "`healthy`: all of it can be called; `degraded`: a part cools down after a failure; `down`: all does; `away`: the provider's proxy is not connected",
} as const;

const usd = (description: string) => ({ type: ['number', 'null'], description }) as const;

const modelPricing = {
  prompt: usd('USD per 1M prompt tokens'),
  completion: usd('USD per 1M completion tokens'),
} as const;

const named = (description: string) => ({ type: 'object', additionalProperties: { type: 'number' }, description }) as const;

/** What stands in `pricing` depends on the primitive. */
export const pricingSchema = {
  type: 'object',
  description:
    'Models: `prompt`, `completion`, `image`. Tools: `per_call`, `tools`. Agents: `per_call`, `prompt`, `completion`. Images: `generation`, `resolutions`. Videos: `per_second`, `base`, `audio_multiplier`',
  properties: {
    ...modelPricing,
    image: usd('USD per input image'),
    per_call: usd('USD per call'),
    tools: named('USD per call of those tools that cost something else than `per_call`, by name'),
    generation: usd('USD per image'),
    resolutions: named('USD per image in those resolution tiers that cost something else than `generation`'),
    per_second: named('USD per second of video, by resolution'),
    base: usd('USD per video, on top of its seconds'),
    audio_multiplier: { type: 'number', description: 'How many times as much a second with sound costs' },
  },
} as const;

const doorSchema = {
  type: 'object',
  required: ['primitive', 'pricing', ...Object.keys(standingProperties)],
  properties: { primitive: primitivesSchema.items, pricing: pricingSchema, ...standingProperties },
} as const;

const listingProperties = {
  name: { type: 'string', description: 'What it is called by' },
  display_name: { type: 'string' },
  primitives: { ...primitivesSchema, description: 'What it can be called as: one service may have several doors' },
  status: statusSchema,
} as const;

const listingSchema = { type: 'object', required: Object.keys(listingProperties), properties: listingProperties } as const;

const listingDetailSchema = {
  type: 'object',
  required: [...listingSchema.required, 'description', 'doors'],
  properties: {
    ...listingProperties,
    description: { type: 'string' },
    doors: { type: 'array', items: doorSchema, description: 'One for each primitive' },
  },
} as const;

const providerProperties = {
  id: { type: 'string', description: 'Public key. Pin a call to this provider with `<id>:<service name>` as the model' },
  name: { type: 'string' },
  services: { type: 'integer', description: 'Number of services it offers' },
  primitives: primitivesSchema,
  status: statusSchema,
  reached: { type: 'string', enum: ['direct', 'tunnel'], description: 'By its address, or through the connection that its proxy dialled in with' },
  listed_since: { type: 'string', description: 'When the oldest of its services was listed' },
  uptime: { type: ['number', 'null'], description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none" },
  requests: { type: 'integer', description: 'Calls of the last hour' },
  flags: flagsSchema,
} as const;

const provider = (listing: object) => ({
  type: 'object',
  required: [...Object.keys(providerProperties), 'listings'],
  properties: { ...providerProperties, listings: { type: 'array', items: listing, description: 'What it offers, by name' } },
});

export const providerSchema = provider(listingSchema);
export const providerDetailSchema = provider(listingDetailSchema);

const serviceProviderProperties = {
  id: { type: 'string', description: 'Public key' },
  name: { type: 'string' },
  primitives: primitivesSchema,
  pricing: pricingSchema,
  ...standingProperties,
} as const;

const serviceProperties = {
  id: { type: 'string', description: 'The same as `name`' },
  ...listingProperties,
  description: { type: 'string' },
  providers: {
    type: 'array',
    items: { type: 'object', required: Object.keys(serviceProviderProperties), properties: serviceProviderProperties },
    description: 'Everyone who offers it. Pin one with `<id>:<name>`',
  },
} as const;

export const serviceSchema = { type: 'object', required: Object.keys(serviceProperties), properties: serviceProperties } as const;

import { PRIMITIVES } from '#config';
import { flagsSchema, healthProperties, leftOutSchemaOf, pricingSchema } from '#catalog';
import { objectOf, titled } from '../route-schemas.ts';

/* Schemas of the catalogue's pages, for the reference. */

export const primitivesSchema = {
  type: 'array',
  items: { type: 'string', enum: PRIMITIVES },
} as const;

export const serviceStatusSchema = {
  type: 'string',
  enum: ['healthy', 'untried', 'degraded', 'failing', 'down', 'away'],
  description:
    "`healthy`: all of it can be called, and a call of the last hour succeeded; `untried`: all of it can be called, and no call of the last hour shows whether it works; `degraded`: a part cools down after a failure, or is failing; `failing`: none of it works, and some may be called; `down`: all cools down; `away`: the provider's proxy is not connected",
} as const;

const offerSchema = objectOf({ primitive: primitivesSchema.items, pricing: pricingSchema, ...healthProperties });

const listingProperties = {
  name: { type: 'string', description: 'What it is called by' },
  display_name: { type: 'string' },
  primitives: { ...primitivesSchema, description: 'How it can be called: one service may have several APIs' },
  status: serviceStatusSchema,
} as const;

const listingSchema = titled('Listing', objectOf(listingProperties));

const listingDetailSchema = titled(
  'ListingDetail',
  objectOf({
    ...listingProperties,
    description: { type: 'string' },
    doors: { type: 'array', items: offerSchema, description: 'One for each primitive' },
  }),
);

const providerProperties = {
  id: {
    type: 'string',
    description: 'Public key. Pin a call to this provider with `<id>:<service name>` as the model',
  },
  name: { type: 'string' },
  slug: { type: 'string', description: 'The name in small letters, digits and hyphens' },
  privacy_policy_url: { type: ['string', 'null'], description: 'Always null, because providers do not report it' },
  services: { type: 'integer', description: 'Number of services it offers' },
  primitives: primitivesSchema,
  status: serviceStatusSchema,
  reached: {
    type: 'string',
    enum: ['direct', 'tunnel'],
    description: 'How calls reach it: by its address, or through the connection of its proxy',
  },
  listed_since: { type: 'string', description: 'When the oldest of its services was listed' },
  uptime: {
    type: ['number', 'null'],
    description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none",
  },
  requests: { type: 'integer', description: 'Calls of the last hour' },
  flags: flagsSchema,
} as const;

const provider = (listing: object) =>
  objectOf({
    ...providerProperties,
    listings: { type: 'array', items: listing, description: 'What it offers, by name' },
  });

export const providerSchema = provider(listingSchema);
export const providerDetailSchema = provider(listingDetailSchema);

const serviceProviderSchema = titled(
  'ServiceProvider',
  objectOf({
    id: { type: 'string', description: 'Public key' },
    name: { type: 'string' },
    primitives: primitivesSchema,
    pricing: pricingSchema,
    ...healthProperties,
  }),
);

const serviceProperties = {
  id: { type: 'string', description: 'The same as `name`' },
  ...listingProperties,
  description: { type: 'string' },
  providers: {
    type: 'array',
    items: serviceProviderSchema,
    description: 'Everyone who offers it. Pin one with `<id>:<name>`',
  },
} as const;

export const serviceSchema = titled('Service', objectOf(serviceProperties));

const usdText = (description: string) =>
  ({ type: 'string', description: `USD, as an exact decimal: ${description}` }) as const;

const toolPriceSchema = titled(
  'ToolPrice',
  objectOf(
    {
      per_call: usdText('per call; "0" where it is free'),
      per_second: usdText('per second that the tool reports'),
      prompt: usdText('per 1M prompt tokens that the tool reports'),
      completion: usdText('per 1M completion tokens that the tool reports'),
      per_call_max: usdText('the most that a call costs, by its use or at a provider that asks more'),
      currency: { type: 'string', const: 'USDC' },
    },
    ['per_second', 'prompt', 'completion', 'per_call_max'],
  ),
);

const definitionSchema = {
  type: 'object',
  description:
    "The provider's words about the tool, which nobody here has checked, and whether they are still the same",
  required: ['sha256'],
  properties: {
    sha256: {
      type: 'string',
      description:
        'Of the JSON object of `name`, `title`, `description`, `inputSchema`, `outputSchema` and `annotations`, in this order and each as the server wrote it, in hex',
    },
    version: { type: 'integer', description: 'Counts the definitions that the tool has had at this provider' },
    changed_at: { type: 'string', description: 'From version 2 on' },
    remote_ref: {
      type: 'boolean',
      const: true,
      description: 'A schema of the tool refers to another document, which the gateway never fetches',
    },
  },
} as const;

const toolSchema = titled(
  'Tool',
  objectOf(
    {
      name: { type: 'string' },
      title: { type: ['string', 'null'] },
      description: { type: 'string', description: 'Its first 500 characters where several services are listed' },
      price: toolPriceSchema,
      definition: definitionSchema,
      input_schema: {
        description:
          'JSON Schema of the arguments; with `schemas=true`. null for a tool beyond the first 512 KiB of definitions: `tools/list` of MCP has all',
      },
    },
    ['input_schema'],
  ),
);

export const toolServiceSchema = titled(
  'ToolService',
  objectOf(
    {
      ...serviceProperties,
      tools: {
        type: ['array', 'null'],
        items: toolSchema,
        description:
          'What its servers list, by name: not all of them if several services are listed. null while that is not known',
      },
      tools_total: { type: 'integer', description: 'How many tools there are' },
      left_out: leftOutSchemaOf({ provider: { type: 'string', description: 'The provider whose server it is' } }),
    },
    ['tools', 'tools_total', 'left_out'],
  ),
);

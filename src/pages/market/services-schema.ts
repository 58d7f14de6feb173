import { healthProperties } from '#gateway';
import { objectOf, titled } from '../answer-schemas.ts';
import { pricingSchema, primitivesSchema, serviceStatusSchema } from './market-schema.ts';

const texts = (description: string) => ({ type: 'array', items: { type: 'string' }, description }) as const;
const tokens = (description: string) => ({ type: ['integer', 'null'], description }) as const;

const contextLength = tokens('Most tokens that a model accepts in one call');
const maxOutputTokens = tokens('Most tokens of one answer; null where the provider declares nothing');
const listedSince = { type: 'string', description: 'RFC 3339' } as const;
const typicalUsdSchema = {
  type: 'number',
  description:
    'USD of a typical use, to compare prices: 1,000 tokens read and 1,000 written, one call of a tool, one message to an agent, one image, a video of about 5 seconds in the resolution that costs least',
} as const;

const rowProperties = {
  primitive: primitivesSchema.items,
  name: { type: 'string', description: 'What it is called by' },
  display_name: { type: 'string' },
  description: { type: 'string', description: 'The words of the provider. In the list its first 200 characters' },
  status: serviceStatusSchema,
  uptime: {
    type: ['number', 'null'],
    description: "Share of the last hour's calls that did not fail, 0 to 1; null when there were none",
  },
  requests: { type: 'integer', description: 'Calls of the last hour' },
  listed_since: listedSince,
  input_modalities: texts('Of models, images and videos'),
  output_modalities: texts('Of models, images and videos'),
  context_length: contextLength,
  max_output_tokens: maxOutputTokens,
  resolutions: texts('Of images and videos'),
  durations: texts('Of videos'),
  aspect_ratios: texts('Of images and videos'),
  formats: texts('Of image files'),
  supported_parameters: texts(
    'Request fields that it accepts in addition to those of every service of its kind. For models, all fields are in `supported_parameters` of `/models`',
  ),
  pricing: pricingSchema,
  typical_usd: typicalUsdSchema,
  typical_seconds: {
    type: ['number', 'null'],
    description: 'Length of the video that `typical_usd` is the price of; null for other kinds',
  },
} as const;

const named = { id: { type: 'string', description: 'Public key' }, name: { type: 'string' } } as const;

/** A service as a row of the market, with the price of its cheapest provider. */
export const serviceRowSchema = titled(
  'ServiceRow',
  objectOf({ ...rowProperties, providers: { type: 'array', items: objectOf(named) } }),
);

/** A service with the price and the health of each of its providers. */
export const serviceDetailSchema = titled(
  'ServiceDetail',
  objectOf({
    ...rowProperties,
    providers: {
      type: 'array',
      description: 'The cheapest first',
      items: objectOf({
        ...named,
        pricing: pricingSchema,
        typical_usd: typicalUsdSchema,
        reached: { type: 'string', enum: ['direct', 'tunnel'] },
        listed_since: listedSince,
        context_length: contextLength,
        max_output_tokens: maxOutputTokens,
        ...healthProperties,
      }),
    },
  }),
);

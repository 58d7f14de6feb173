import { GatewayError } from '#errors';
import { DOCUMENTED, MUST_BE, nameSchema, objectField } from '#http';
import { type ProviderPreferences, routingFields } from '#call';

const INPUTS_MAX = 2_048;
const INPUT_RIGHT = `a string, an array of 1 to ${INPUTS_MAX} strings, an array of tokens, or an array of arrays of tokens`;

type Tokens = readonly number[];

export interface EmbeddingsBody {
  readonly model: string;
  readonly input: string | readonly string[] | Tokens | readonly Tokens[];
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

const { provider, session_id: session, max_cost: maxCost } = routingFields;

export const EMBEDDINGS_PARAMETERS: readonly string[] = ['dimensions', 'encoding_format', 'user'];

export const embeddingsSchema = {
  title: 'EmbeddingsRequest',
  type: 'object',
  required: ['model', 'input'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ model: 'demo/embedding', input: 'What is a tollgate?' }],
  properties: {
    model: {
      ...nameSchema,
      description: 'A model whose output is embeddings.',
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    input: {
      type: ['string', 'array'],
      minItems: 1,
      items: {
        type: ['string', 'integer', 'array'],
        minimum: 0,
        minItems: 1,
        items: { type: 'integer', minimum: 0, [MUST_BE]: 'a token' },
        [MUST_BE]: 'a string, a token, or an array of tokens',
      },
      description: 'Texts, or tokens of texts.',
      [MUST_BE]: INPUT_RIGHT,
      [DOCUMENTED]: {
        allOf: [
          {
            anyOf: [
              { type: 'string' },
              { items: { type: 'string' }, maxItems: INPUTS_MAX },
              { items: { type: 'integer' } },
              { items: { type: 'array' }, maxItems: INPUTS_MAX },
            ],
          },
        ],
      },
    },
    dimensions: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 1_000_000,
      description: 'Length of each embedding, for models that support several lengths.',
      [MUST_BE]: 'an integer from 1 to 1000000',
    },
    encoding_format: {
      enum: ['float', 'base64', null],
      description: 'How each embedding is written. Default `float`.',
      [MUST_BE]: 'float or base64',
    },
    user: {
      type: ['string', 'null'],
      maxLength: 1024,
      description: 'Your identifier of the end user; forwarded.',
      [MUST_BE]: 'a string of at most 1024 characters',
    },
    metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
    provider,
    session_id: session,
    max_cost: maxCost,
  },
} as const;

/**
 * Throws GatewayError `invalid_request` for inputs of several kinds, or for too many inputs. The tokens of a single
 * text may be more.
 */
export function checkInput({ input }: EmbeddingsBody): void {
  if (typeof input === 'string') return;
  const [first] = input;
  const kind = typeof first;
  const alike = (input as readonly unknown[]).every((one) => typeof one === kind);
  if (alike && (kind === 'number' || input.length <= INPUTS_MAX)) return;
  throw new GatewayError('invalid_request', `input must be ${INPUT_RIGHT}`, { param: 'input' });
}

export const embeddingsAnswerSchema = {
  title: 'Embeddings',
  type: 'object',
  required: ['object', 'data', 'model', 'usage'],
  additionalProperties: true,
  properties: {
    object: { type: 'string', const: 'list' },
    data: {
      type: 'array',
      items: {
        type: 'object',
        required: ['index', 'embedding'],
        properties: {
          object: { type: 'string', const: 'embedding' },
          index: { type: 'integer' },
          embedding: {
            type: ['array', 'string'],
            items: { type: 'number' },
            description: 'Numbers, or the base64 of their 32-bit floats.',
          },
        },
        additionalProperties: true,
      },
    },
    model: { type: 'string', description: 'The name that was called.' },
    usage: {
      type: 'object',
      required: ['prompt_tokens', 'total_tokens'],
      additionalProperties: true,
      properties: {
        prompt_tokens: { type: 'integer', description: 'Tokens.' },
        total_tokens: { type: 'integer', description: 'Tokens.' },
        estimated: { type: 'boolean', description: 'The gateway counted the tokens, because the provider did not.' },
        cost: { type: 'number', description: 'USD charged.' },
      },
    },
  },
} as const;

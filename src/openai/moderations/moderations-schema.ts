import { GatewayError } from '#errors';
import { DOCUMENTED, MUST_BE, nameSchema, objectField } from '#http';
import { type ProviderPreferences, routingFields } from '#call';
import { isObject } from '#wire';

const INPUTS_MAX = 2_048;
const INPUT_RIGHT = `a text, an array of 1 to ${INPUTS_MAX} texts, or an array of parts with type text or image_url`;

interface ModerationPart {
  readonly type: string;
  readonly text?: string;
  readonly image_url?: { readonly url: string };
}

export interface ModerationBody {
  readonly model: string;
  readonly input: string | readonly string[] | readonly ModerationPart[];
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

/** The model of a request that names none, as in OpenAI's API. */
const DEFAULT_MODEL = 'omni-moderation-latest';

const { provider, session_id: session, max_cost: maxCost } = routingFields;

export const moderationSchema = {
  title: 'ModerationRequest',
  type: 'object',
  required: ['model', 'input'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ model: 'acme/judge', input: 'A text to judge.' }],
  properties: {
    model: {
      ...nameSchema,
      description: `A model whose output is \`moderation\`. Default: \`${DEFAULT_MODEL}\`.`,
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    input: {
      type: ['string', 'array'],
      minItems: 1,
      maxItems: INPUTS_MAX,
      items: {
        type: ['string', 'object'],
        required: ['type'],
        additionalProperties: true,
        properties: {
          type: { enum: ['text', 'image_url'], [MUST_BE]: 'text or image_url' },
          text: { type: 'string' },
          image_url: {
            type: 'object',
            required: ['url'],
            properties: { url: { type: 'string', description: 'A data URL, or an address.' } },
          },
        },
        [MUST_BE]: 'a text, or a part with type text or image_url',
        [DOCUMENTED]: {
          allOf: [
            {
              anyOf: [
                { required: ['text'], properties: { type: { enum: ['text'] } } },
                { required: ['image_url'], properties: { type: { enum: ['image_url'] } } },
              ],
            },
          ],
        },
      },
      description: 'Texts, each of which is judged by itself; or the parts of one input.',
      [MUST_BE]: INPUT_RIGHT,
      [DOCUMENTED]: {},
    },
    metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
    provider,
    session_id: session,
    max_cost: maxCost,
  },
} as const;

export const withDefaultModel = (body: unknown): unknown =>
  isObject(body) && (body['model'] ?? null) === null ? { ...body, model: DEFAULT_MODEL } : body;

/** Throws GatewayError `invalid_request` for texts and parts in one list, and for a part without what it is. */
export function checkModerated({ input }: ModerationBody): void {
  if (typeof input === 'string') return;
  const kinds = new Set((input as readonly unknown[]).map((one) => typeof one));
  if (kinds.size > 1) throw new GatewayError('invalid_request', `input must be ${INPUT_RIGHT}`, { param: 'input' });
  input.forEach((part, index) => {
    if (typeof part === 'string' || part[part.type as 'text' | 'image_url'] !== undefined) return;
    const param = `input[${index}].${part.type}`;
    throw new GatewayError('invalid_request', `${param} is missing`, { param });
  });
}

const flags = { type: 'object', additionalProperties: { type: ['boolean', 'null'] } } as const;

export const moderationAnswerSchema = {
  title: 'Moderation',
  type: 'object',
  required: ['id', 'model', 'results', 'usage'],
  additionalProperties: true,
  properties: {
    id: { type: 'string' },
    model: { type: 'string', description: 'The name that was called.' },
    results: {
      type: 'array',
      description: 'One for each text, or one for all parts.',
      items: {
        type: 'object',
        required: ['flagged'],
        additionalProperties: true,
        properties: {
          flagged: { type: 'boolean' },
          categories: { ...flags, description: 'Whether each category applies.' },
          category_scores: { type: 'object', additionalProperties: { type: 'number' } },
        },
      },
    },
    usage: {
      type: 'object',
      required: ['cost'],
      additionalProperties: true,
      properties: { cost: { type: 'number', description: 'USD charged.' } },
    },
  },
} as const;

import { GatewayError } from '#errors';
import { DOCUMENTED, MUST_BE, nameSchema, objectField } from '#http';
import { type ProviderPreferences, routingFields } from '#call';

const DOCUMENTS_MAX = 10_000;
const DOCUMENT_RIGHT = 'a text, or an object with text or image';

export type RerankDocument = string | Readonly<Record<string, unknown>>;

export interface RerankBody {
  readonly model: string;
  readonly query: string;
  readonly documents: readonly RerankDocument[];
  readonly top_n?: number | null;
  readonly max_tokens_per_doc?: number | null;
  readonly return_documents?: boolean | null;
  readonly provider?: ProviderPreferences | null;
  readonly session_id?: string | null;
  readonly max_cost?: number | string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly [field: string]: unknown;
}

const { provider, session_id: session, max_cost: maxCost } = routingFields;

export const rerankSchema = {
  title: 'RerankRequest',
  type: 'object',
  required: ['model', 'query', 'documents'],
  additionalProperties: true,
  [MUST_BE]: 'a JSON object',
  examples: [{ model: 'acme/sorter', query: 'Where is a toll?', documents: ['A gate on a road.', 'An apple.'] }],
  properties: {
    model: {
      ...nameSchema,
      description: 'A model whose output is `rerank`.',
      [MUST_BE]: 'the name of a model: 1 to 256 characters without control characters',
    },
    query: { type: 'string', minLength: 1, description: 'What is searched for.', [MUST_BE]: 'a text' },
    documents: {
      type: 'array',
      minItems: 1,
      maxItems: DOCUMENTS_MAX,
      items: {
        type: ['string', 'object'],
        additionalProperties: true,
        properties: { text: { type: 'string' }, image: { type: 'string', description: 'A data URL, or an address.' } },
        [MUST_BE]: DOCUMENT_RIGHT,
        [DOCUMENTED]: {
          allOf: [
            { anyOf: [{ type: 'string' }, ...['text', 'image'].map((name) => ({ type: 'object', required: [name] }))] },
          ],
        },
      },
      description: 'Texts, or objects that the provider takes.',
      [MUST_BE]: `an array of 1 to ${DOCUMENTS_MAX} texts or objects`,
    },
    top_n: {
      type: ['integer', 'null'],
      minimum: 1,
      description: 'How many of the most relevant documents the answer has. Default: all.',
      [MUST_BE]: 'an integer from 1',
    },
    max_tokens_per_doc: {
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 10_000_000,
      description: 'Longer documents are cut to so many tokens.',
      [MUST_BE]: 'an integer from 1 to 10000000',
    },
    return_documents: {
      type: ['boolean', 'null'],
      description: 'Whether the answer repeats the documents. Default true, at `/v2/rerank` false.',
      [MUST_BE]: 'true or false',
    },
    metadata: objectField('Key and value pairs for the logs. Not forwarded to the provider.'),
    provider,
    session_id: session,
    max_cost: maxCost,
  },
} as const;

/** Throws GatewayError `invalid_request` for a document without anything in it. */
export function checkDocuments({ documents }: RerankBody): void {
  documents.forEach((document, index) => {
    if (typeof document === 'string' || Object.values(document).some((value) => value !== null)) return;
    const param = `documents[${index}]`;
    throw new GatewayError('invalid_request', `${param} must be ${DOCUMENT_RIGHT}`, { param });
  });
}

export const rerankAnswerSchema = {
  title: 'Rerank',
  type: 'object',
  required: ['id', 'model', 'provider', 'results', 'meta', 'usage'],
  additionalProperties: true,
  properties: {
    id: { type: 'string', description: 'The id of the call.' },
    model: { type: 'string', description: 'The name that was called.' },
    provider: { type: 'string', description: 'The name of the provider.' },
    results: {
      type: 'array',
      description: 'The most relevant document first.',
      items: {
        type: 'object',
        required: ['index', 'relevance_score'],
        properties: {
          index: { type: 'integer', description: 'The place of the document in the request.' },
          relevance_score: { type: 'number' },
          document: { type: 'object', additionalProperties: true, description: 'The document of the request.' },
        },
      },
    },
    meta: {
      type: 'object',
      required: ['billed_units'],
      properties: {
        api_version: { type: 'object', properties: { version: { type: 'string' } } },
        billed_units: { type: 'object', properties: { search_units: { type: 'integer' } } },
      },
    },
    usage: {
      type: 'object',
      required: ['search_units'],
      additionalProperties: true,
      properties: {
        total_tokens: { type: 'integer', description: 'Tokens, if the provider reports them or they have a price.' },
        search_units: { type: 'integer', description: 'Queries with up to 100 documents.' },
        estimated: { type: 'boolean', description: 'The gateway counted, because the provider did not.' },
        cost: { type: 'number', description: 'USD charged.' },
      },
    },
  },
} as const;

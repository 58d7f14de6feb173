import { DOCUMENTED } from '#http';
import { expiresAfterSchema } from './shared-schema.ts';

export const ENDPOINTS: readonly string[] = [
  '/v1/chat/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/completions',
];

export interface BatchBody {
  readonly input_file_id: string;
  readonly endpoint: string;
  readonly completion_window: '24h';
  readonly metadata?: Readonly<Record<string, string>> | null;
  readonly output_expires_after?: { readonly anchor: string; readonly seconds: number };
  readonly max_cost?: string | number | null;
  readonly callback_url?: string | null;
}

const METADATA_MAX = 16;

export const batchBody = {
  type: 'object',
  required: ['input_file_id', 'endpoint', 'completion_window'],
  properties: {
    input_file_id: { type: 'string', minLength: 1, maxLength: 128, description: 'Id of an uploaded file.' },
    endpoint: {
      type: 'string',
      maxLength: 64,
      [DOCUMENTED]: { enum: ENDPOINTS },
      description: `The address of all requests of the batch: ${ENDPOINTS.map((path) => `\`${path}\``).join(', ')}.`,
    },
    completion_window: { type: 'string', const: '24h' },
    metadata: {
      type: ['object', 'null'],
      maxProperties: METADATA_MAX,
      propertyNames: { maxLength: 64 },
      additionalProperties: { type: 'string', maxLength: 512 },
      description: 'Your own texts, which the batch shows. `tollgate/max_cost` is also read, as `max_cost`.',
    },
    output_expires_after: { ...expiresAfterSchema, description: 'When the files of results are deleted.' },
    max_cost: {
      anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }],
      description:
        'The most that all lines together may cost, in USD. It is locked instead of the sum of what they may cost, if it is less. A line that does not fit into what is left gets an error.',
    },
    callback_url: {
      type: ['string', 'null'],
      maxLength: 2048,
      [DOCUMENTED]: { type: 'string', format: 'uri', pattern: '^https://' },
      description: 'An https address that gets a signed message when the batch has ended.',
    },
  },
  additionalProperties: true,
  examples: [
    { input_file_id: 'file-abc123', endpoint: '/v1/chat/completions', completion_window: '24h', max_cost: '0.50' },
  ],
};

const seconds = (description: string) => ({ type: ['integer', 'null'], description: `Epoch seconds ${description}` });
const count = { type: 'integer' };

export const batchSchema = {
  title: 'Batch',
  type: 'object',
  required: ['id', 'object', 'endpoint', 'input_file_id', 'completion_window', 'status', 'created_at'],
  properties: {
    id: { type: 'string' },
    object: { type: 'string', const: 'batch' },
    endpoint: { type: 'string' },
    model: { type: ['string', 'null'], description: 'The model of all lines; null if they name several.' },
    errors: {
      type: ['object', 'null'],
      properties: {
        object: { type: 'string', const: 'list' },
        data: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              code: { type: 'string' },
              message: { type: 'string' },
              line: { type: ['integer', 'null'], description: 'The number of the line, from 1.' },
              param: { type: ['string', 'null'] },
            },
          },
        },
      },
      description: 'Why the batch failed.',
    },
    input_file_id: { type: 'string' },
    completion_window: { type: 'string', const: '24h' },
    status: {
      type: 'string',
      enum: ['validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled'],
    },
    output_file_id: { type: ['string', 'null'], description: 'The file with the answers.' },
    error_file_id: { type: ['string', 'null'], description: 'The file with the requests that have no answer.' },
    created_at: seconds('of its creation.'),
    in_progress_at: seconds('at which its money was locked.'),
    expires_at: seconds('at which it expires.'),
    finalizing_at: seconds('at which its last line had ended.'),
    completed_at: seconds('of its end, if it was completed.'),
    failed_at: seconds('of its end, if it failed.'),
    expired_at: seconds('of its end, if it expired.'),
    cancelling_at: seconds('at which it was cancelled.'),
    cancelled_at: seconds('of its end, if it was cancelled.'),
    request_counts: {
      type: 'object',
      properties: { total: count, completed: count, failed: count },
    },
    usage: {
      type: ['object', 'null'],
      properties: {
        input_tokens: count,
        input_tokens_details: { type: 'object', properties: { cached_tokens: count } },
        output_tokens: count,
        output_tokens_details: { type: 'object', properties: { reasoning_tokens: count } },
        total_tokens: count,
      },
      description: 'The tokens of all lines, at the end.',
    },
    metadata: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
    tollgate: {
      type: 'object',
      properties: {
        generation_id: {
          type: ['string', 'null'],
          description: 'Id of the lock: `/generation` lists the calls under it.',
        },
        locked_usd: { type: ['string', 'null'], description: 'The amount of the lock, in USD.' },
        max_cost: { type: ['string', 'null'], description: 'The cap of the request, in USD.' },
        callback_secret: {
          type: 'string',
          description:
            'Key that signs the messages to `callback_url`, in the answer to a request that has one. It is the same for all batches of an account, and another one for those of each restricted key.',
        },
      },
    },
  },
};

import { DOCUMENTED, MUST_BE } from '#gateway';
import { FILTERS, TYPES } from './models-listing.ts';

/* Requests for pages of models as the reference describes them. */

/** The kinds of output that a model can have here, and the ones that clients of OpenRouter's API ask for. */
const KINDS = [
  'text',
  'image',
  'video',
  'audio',
  'file',
  'embeddings',
  'rerank',
  'speech',
  'transcription',
  'decisions',
];

export const querySchema = {
  type: 'object',
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
    limit: { type: 'integer', minimum: 1, maximum: 1_000, description: 'Most entries of `data`. Default: all.' },
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

import { modelSchema } from './models-schema.ts';

/* The lists of models of one kind as the reference describes them. */

const text = { type: 'string' } as const;
const texts = { type: 'array', items: text } as const;
const textsOrNull = { type: ['array', 'null'], items: text, description: 'null if no provider states it.' } as const;
const epoch = { type: 'integer', description: 'Epoch seconds.' } as const;

const parametersSchema = {
  type: 'object',
  description: 'What a request may have, by name.',
  additionalProperties: {
    type: 'object',
    required: ['type'],
    properties: {
      type: { type: 'string', enum: ['boolean', 'enum'], description: '`enum`: one of `values`.' },
      values: texts,
    },
  },
} as const;

const listOf = (title: string, properties: Readonly<Record<string, object>>) => ({
  title,
  type: 'object',
  required: ['data'],
  properties: {
    data: { type: 'array', items: { type: 'object', required: Object.keys(properties), properties } },
  },
});

export const imageModelsSchema = listOf('ImageModelList', {
  id: text,
  name: { type: 'string', description: 'To display.' },
  created: epoch,
  description: text,
  architecture: {
    type: 'object',
    properties: { modality: text, input_modalities: texts, output_modalities: texts },
  },
  endpoints: { type: 'string', description: 'Path of the page of its providers.' },
  supported_parameters: parametersSchema,
  supports_streaming: { type: 'boolean' },
});

export const imageEndpointsSchema = {
  title: 'ImageModelEndpoints',
  type: 'object',
  required: ['id', 'endpoints'],
  properties: {
    id: text,
    endpoints: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          provider_name: text,
          provider_slug: text,
          provider_tag: { type: 'null' },
          pricing: {
            type: 'array',
            items: {
              type: 'object',
              properties: {
                billable: { type: 'string', enum: ['output_image', 'input_image'] },
                unit: { type: 'string', enum: ['image'] },
                variant: { type: 'string', description: 'The tier, or the tier in a quality, that costs this much.' },
                cost_usd: { type: 'number', description: 'USD.' },
              },
            },
          },
          supported_parameters: parametersSchema,
          supports_streaming: { type: 'boolean' },
          allowed_passthrough_parameters: texts,
        },
      },
    },
  },
} as const;

export const videoModelsSchema = listOf('VideoModelList', {
  id: text,
  canonical_slug: text,
  name: { type: 'string', description: 'To display.' },
  created: epoch,
  description: text,
  supported_aspect_ratios: textsOrNull,
  supported_resolutions: textsOrNull,
  supported_durations: { ...textsOrNull, items: { type: 'integer' }, description: 'Seconds. null if none is stated.' },
  supported_sizes: { type: 'null', description: 'Every size up to the largest resolution.' },
  supported_frame_images: textsOrNull,
  generate_audio: { type: 'boolean' },
  seed: { type: 'boolean' },
  creativity: { type: 'null', description: 'No model here upscales.' },
  upscale_factor: { type: 'null', description: 'No model here upscales.' },
  pricing_skus: {
    type: 'object',
    additionalProperties: text,
    description: 'USD as decimal texts: `per_second_720p` for each resolution, and `base` for each video.',
  },
  allowed_passthrough_parameters: texts,
});

export const embeddingModelsSchema = {
  title: 'EmbeddingModelList',
  type: 'object',
  required: ['data', 'total_count', 'links'],
  properties: {
    data: { type: 'array', items: modelSchema },
    total_count: { type: 'integer' },
    links: { type: 'object', properties: { next: { type: 'null', description: 'All models are in one page.' } } },
  },
} as const;

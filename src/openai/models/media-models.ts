import { unitUsd } from '#billing/amounts';
import { isOfKind } from '#config/model-kinds';
import { byService, type Catalog, type ImagePrice, type Offer, slugOf, viewImagePrice, viewPrice } from '#catalog';
import { createPageEntries, type PageMembers } from '#http';
import { viewHead, viewImageModel, viewModel, viewVideoModel } from './models-view.ts';
import { modelSchema } from './models-schema.ts';

/* Models of images, videos and embeddings, as clients of OpenAI's and OpenRouter's API read them. */

/** Fields of a video service that lists none, because it is then asked with the usual ones (`media/video/wires`). */
const USUAL_OF_VIDEOS: readonly string[] = ['image_url', 'seed'];

/**
 * The prices of a media model: what is paid for beside tokens under the names that `type=image` has, and tokens as in
 * the entries of other models, in USD for one.
 */
export const mediaPricing = ({ price }: Offer, pricing: object) => ({
  completion: '0',
  image: '0',
  ...pricing,
  prompt: unitUsd(price.rates.prompt ?? 0n),
});

/** The entry of an image or a video model beside those of chat models. `offers` is not empty. */
export function viewMediaEntry(offers: readonly Offer[]) {
  const {
    providers: _names,
    pricing,
    supported_params: parameters,
    ...media
  } = offers[0]!.primitive === 'video' ? viewVideoModel(offers) : viewImageModel(offers);
  const head = viewHead(offers);
  return {
    ...media,
    ...head,
    providers: offers.map((offer) => ({
      id: offer.provider.id,
      name: offer.provider.name,
      pricing: viewPrice(offer),
    })),
    context_length: null,
    architecture: architectureOf(offers),
    pricing: mediaPricing(offers[0]!, pricing),
    supported_parameters: parameters,
    top_provider: { context_length: null, max_completion_tokens: null, is_moderated: false },
    links: { details: `/api/v1/models/${head.id}/endpoints` },
    default_parameters: null,
    per_request_limits: null,
    supported_voices: null,
  };
}

function architectureOf(offers: readonly Offer[]) {
  const takesImages = offers.some(({ primitive, media }) =>
    primitive === 'video' ? fieldsOf(media).includes('image_url') : media?.imageApi?.edits === true,
  );
  const input = takesImages ? ['text', 'image'] : ['text'];
  const output = [offers[0]!.primitive];
  return { modality: `${input.join('+')}->${output.join('+')}`, input_modalities: input, output_modalities: output };
}

const fieldsOf = (media: Offer['media']): readonly string[] =>
  media === null || media.supportedParams.length === 0 ? USUAL_OF_VIDEOS : media.supportedParams;

/** `GET /images/models`, in the shape of OpenRouter's API. */
export const viewImageModels = (catalog: Pick<Catalog, 'offers'>): PageMembers => ({
  data: imageEntries(byService(catalog.offers('image'))),
});

const imageEntries = createPageEntries((offers: readonly Offer[]) => {
  const { id, created, display_name: name, description } = viewHead(offers);
  return {
    id,
    name,
    created,
    description,
    architecture: architectureOf(offers),
    endpoints: `/api/v1/images/models/${id}/endpoints`,
    supported_parameters: parametersOf(offers),
    supports_streaming: offers.some(streams),
  };
});

/** `GET /images/models/{name}/endpoints`, in the shape of OpenRouter's API. `offers` is not empty. */
export const viewImageEndpoints = (offers: readonly Offer[]): object => ({
  id: offers[0]!.service,
  endpoints: offers.map((offer) => ({
    provider_name: offer.provider.name,
    provider_slug: slugOf(offer.provider.name),
    provider_tag: null,
    pricing: imagePrices(viewImagePrice(offer)),
    supported_parameters: parametersOf([offer]),
    supports_streaming: streams(offer),
    allowed_passthrough_parameters: [],
  })),
});

function imagePrices({ generation, prompt, resolutions = {}, variants = {}, edit, input_image: input }: ImagePrice) {
  const priceLine = (usd: number, variant?: string) => ({
    billable: 'output_image',
    unit: 'image',
    ...(variant === undefined ? {} : { variant }),
    cost_usd: usd,
  });
  return [
    priceLine(generation),
    ...Object.entries({ ...resolutions, ...variants }).map(([variant, usd]) => priceLine(usd, variant)),
    ...(edit === undefined ? [] : [priceLine(edit, 'edit')]),
    ...(input === undefined ? [] : [{ billable: 'input_image', unit: 'image', cost_usd: input }]),
    ...(prompt === undefined ? [] : [{ billable: 'input_text', unit: 'token', cost_usd: prompt / 1e6 }]),
  ];
}

const streams = ({ media }: Offer): boolean => media?.supportedParams.includes('stream') === true;

/** A parameter of which the values are not known may have any. */
function parametersOf(offers: readonly Offer[]): Record<string, object> {
  const { supported_params: names, constraints } = viewImageModel(offers);
  const lists = { aspect_ratio: constraints.aspect_ratios, output_format: constraints.formats };
  return {
    ...Object.fromEntries(names.map((name) => [name, { type: 'boolean' }])),
    ...Object.fromEntries(
      Object.entries(lists)
        .filter(([, values]) => values.length > 0)
        .map(([name, values]) => [name, { type: 'enum', values }]),
    ),
  };
}

/** `GET /videos/models`, in the shape of OpenRouter's API. Figures that no provider states are null. */
export const viewVideoModels = (catalog: Pick<Catalog, 'offers'>): PageMembers => ({
  data: videoEntries(byService(catalog.offers('video'))),
});

const videoEntries = createPageEntries((offers: readonly Offer[]) => {
  const { id, created, display_name: name, description } = viewHead(offers);
  const { constraints, pricing } = viewVideoModel(offers);
  const fields = new Set(offers.flatMap(({ media }) => fieldsOf(media)));
  return {
    id,
    canonical_slug: id,
    name,
    created,
    description,
    supported_aspect_ratios: listed(constraints.aspect_ratios),
    supported_resolutions: listed(constraints.resolutions),
    supported_durations: listed(constraints.durations.map((length) => Number.parseInt(length, 10))),
    supported_sizes: null,
    supported_frame_images: framesOf(fields),
    generate_audio: fields.has('generate_audio'),
    seed: fields.has('seed'),
    creativity: null,
    upscale_factor: null,
    pricing_skus: { ...perSecond(pricing.per_second), base: String(pricing.base) },
    allowed_passthrough_parameters: [],
  };
});

/** A price has six decimals at most, so its number is written without an exponent. */
const perSecond = (prices: Readonly<Record<string, number>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(prices).map(([tier, usd]) => [`per_second_${tier}`, String(usd)]));

const listed = <T>(values: readonly T[]): readonly T[] | null => (values.length === 0 ? null : values);

const framesOf = (fields: ReadonlySet<string>): readonly string[] | null =>
  listed([...(fields.has('image_url') ? ['first_frame'] : []), ...(fields.has('end_image_url') ? ['last_frame'] : [])]);

/** `GET /embeddings/models`, in the shape of OpenRouter's API. */
export function viewEmbeddingModels(catalog: Pick<Catalog, 'offers'>): PageMembers {
  const services = byService(catalog.offers('model')).filter((offers) =>
    offers.some(({ model }) => model && isOfKind(model, 'embeddings')),
  );
  return { data: embeddingEntries(services), total_count: services.length, links: { next: null } };
}

const embeddingEntries = createPageEntries(viewModel);

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
                billable: { type: 'string', enum: ['output_image', 'input_image', 'input_text'] },
                unit: { type: 'string', enum: ['image', 'token'] },
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

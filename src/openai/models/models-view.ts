import { type Meter, type MeterRates, METERS, unitUsd, type Rates } from '#billing/amounts';
import { contextDeclared } from '#config';
import { isOfKind, KINDS_OF_MODELS } from '#config/model-kinds';
import {
  descriptionOf,
  viewImagePrice,
  viewModelPrice,
  viewPrice,
  viewVideoPrice,
  type ImagePrice,
  type ModelPrice,
  type Offer,
  type VideoPrice,
} from '#catalog';
import { KIND_ROUTES } from '../kind-routes.ts';
import { chats } from '../model-kinds.ts';
import { SUPPORTED_PARAMETERS } from '../chat/chat-schema.ts';

/** One entry of `data` of `GET /models`. It combines the shapes that several clients expect. */
interface ModelItem {
  readonly id: string;
  readonly object: 'model';
  /** Epoch seconds. */
  readonly created: number;
  readonly canonical_slug: string;
  readonly owned_by: string;
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly providers: readonly ProviderItem[];
  /** The largest that a provider declares; null if none does. */
  readonly context_length: number | null;
  readonly architecture: Architecture;
  /** USD per token and per image of the cheapest provider, as decimal texts. */
  readonly pricing: {
    readonly prompt: string;
    readonly completion: string;
    readonly image: string;
    /** Only of parts that have their own price. */
    readonly [part: string]: string | readonly PricingOverride[];
  };
  readonly supported_parameters: readonly string[];
  /** Of the cheapest provider. */
  readonly top_provider: {
    readonly context_length: number | null;
    readonly max_completion_tokens: number | null;
    readonly is_moderated: boolean;
  };
  readonly links: { readonly details: string };
  /** Some clients parse these members, and fail if one is absent. */
  readonly default_parameters: null;
  readonly per_request_limits: null;
  readonly supported_voices: null;
}

/** Other prices for requests whose prompt has at least so many tokens, those of a cache included. */
interface PricingOverride {
  readonly min_prompt_tokens: number;
  readonly [meter: string]: string | number;
}

interface Architecture {
  /** `text+image->text`. */
  readonly modality: string;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
}

interface ProviderItem {
  readonly id: string;
  readonly name: string;
  readonly pricing: ModelPrice;
}

interface ImageModelItem {
  readonly id: string;
  readonly name: string;
  /** Names. */
  readonly providers: readonly string[];
  readonly supported_params: readonly string[];
  readonly constraints: { readonly aspect_ratios: readonly string[]; readonly formats: readonly string[] };
  /** Of the cheapest provider. */
  readonly pricing: ImagePrice;
}

interface VideoModelItem {
  readonly id: string;
  readonly name: string;
  /** Names. */
  readonly providers: readonly string[];
  readonly model_type: 'text-to-video' | 'image-to-video' | 'video-to-video';
  readonly supported_params: readonly string[];
  readonly constraints: {
    readonly resolutions: readonly string[];
    readonly durations: readonly string[];
    readonly aspect_ratios: readonly string[];
  };
  /** Of the cheapest provider. */
  readonly pricing: VideoPrice;
}

/** The offers of one model service as one entry. `offers` is not empty. */
export function viewModel(offers: readonly Offer[]): ModelItem {
  const head = viewHead(offers);
  const best = cheapest(offers, ({ prompt = 0n, completion = 0n }) => prompt + completion);
  return {
    ...head,
    providers: offers.map((offer) => ({
      id: offer.provider.id,
      name: offer.provider.name,
      pricing: viewModelPrice(offer),
    })),
    context_length: largestContext(offers),
    architecture: viewArchitecture(offers),
    pricing: viewUnitPricing(best.price.rates),
    supported_parameters: union(offers.map(parametersOf)),
    top_provider: {
      context_length: contextOf(best),
      max_completion_tokens: best.model?.maxOutputTokens ?? null,
      is_moderated: false,
    },
    links: { details: `/api/v1/models/${head.id}/endpoints` },
    default_parameters: null,
    per_request_limits: null,
    supported_voices: null,
  };
}

/** The members that models of all kinds have. `offers` is not empty. */
export function viewHead(offers: readonly Offer[]) {
  const first = offers[0]!;
  return {
    id: first.service,
    object: 'model',
    created: createdOf(offers),
    canonical_slug: first.service,
    owned_by: first.provider.name,
    name: first.service,
    display_name: first.displayName,
    description: descriptionOf(offers),
  } as const;
}

function viewArchitecture(offers: readonly Offer[]): Architecture {
  const input = union(offers.map(({ model }) => model?.inputModalities ?? []));
  const output = union(offers.map(({ model }) => model?.outputModalities ?? []));
  return { modality: `${input.join('+')}->${output.join('+')}`, input_modalities: input, output_modalities: output };
}

export function viewImageModel(offers: readonly Offer[]): ImageModelItem {
  return {
    ...viewMedia(offers),
    constraints: {
      aspect_ratios: union(offers.map(({ media }) => media?.aspectRatios ?? [])),
      formats: union(offers.map(({ media }) => media?.formats ?? [])),
    },
    pricing: viewImagePrice(cheapest(offers, ({ image = 0n }) => image)),
  };
}

export function viewVideoModel(offers: readonly Offer[]): VideoModelItem {
  const media = viewMedia(offers);
  return {
    ...media,
    model_type: modelType(media.supported_params),
    constraints: {
      resolutions: union(offers.map(({ media: facts }) => facts?.resolutions ?? [])),
      durations: union(offers.map(({ media: facts }) => facts?.durations ?? [])),
      aspect_ratios: union(offers.map(({ media: facts }) => facts?.aspectRatios ?? [])),
    },
    pricing: viewVideoPrice(cheapest(offers, ({ second = 0n, call = 0n }) => second + call)),
  };
}

function viewMedia(offers: readonly Offer[]) {
  const { service } = offers[0]!;
  return {
    id: service,
    name: service,
    providers: offers.map(({ provider }) => provider.name),
    supported_params: union(offers.map(({ media }) => media?.supportedParams ?? [])),
  };
}

/** The kind of input, besides text, follows from the fields that the service supports. */
function modelType(params: readonly string[]): VideoModelItem['model_type'] {
  if (params.includes('video_url')) return 'video-to-video';
  return params.includes('image_url') ? 'image-to-video' : 'text-to-video';
}

/** The offers of a tool or an agent as one entry. */
export function viewService(offers: readonly Offer[]): Record<string, unknown> {
  const first = offers[0]!;
  return {
    id: first.service,
    object: first.primitive,
    created: createdOf(offers),
    owned_by: first.provider.name,
    name: first.service,
    display_name: first.displayName,
    description: descriptionOf(offers),
    providers: offers.map((offer) => offer.provider.name),
    pricing: viewPrice(first),
  };
}

const contextOf = ({ model }: Offer): number | null => (model ? contextDeclared(model) : null);

function largestContext(offers: readonly Offer[]): number | null {
  const declared = offers.map(contextOf).filter((tokens) => tokens !== null);
  return declared.length === 0 ? null : Math.max(...declared);
}

/** The request fields that an offer of a model takes: those of the endpoints that it answers at, and its own. */
export const parametersOf = (offer: Offer): readonly string[] =>
  union([
    chats(offer.model!) ? SUPPORTED_PARAMETERS : [],
    ...KINDS_OF_MODELS.map(([kind]) => (isOfKind(offer.model!, kind) ? KIND_ROUTES[kind].parameters : [])),
    forwardedBeside(offer),
  ]);

function forwardedBeside({ model }: Offer): readonly string[] {
  const forward = model?.forward ?? [];
  return forward === 'all' ? [] : forward;
}

export function viewUnitPricing(rates: Rates): ModelItem['pricing'] {
  const { tiers = [] } = rates;
  const overrides = tiers.map(({ above, rates: at }) => ({ min_prompt_tokens: Number(above) + 1, ...unitPrices(at) }));
  return {
    prompt: '0',
    completion: '0',
    image: '0',
    ...unitPrices(rates),
    ...(overrides.length === 0 ? {} : { overrides }),
  };
}

/** OpenRouter's name of the price per call. */
const nameOf = (meter: Meter) => (meter === 'call' ? 'request' : meter);

const unitPrices = (rates: MeterRates): Readonly<Partial<Record<ReturnType<typeof nameOf>, string>>> =>
  Object.fromEntries(
    METERS.filter((meter) => rates[meter] !== undefined).map((meter) => [nameOf(meter), unitUsd(rates[meter]!)]),
  );

const cheapest = (offers: readonly Offer[], amount: (rates: Rates) => bigint): Offer =>
  offers.reduce((best, offer) => (amount(offer.price.rates) < amount(best.price.rates) ? offer : best));
const createdOf = (offers: readonly Offer[]) => Math.floor(Math.min(...offers.map((offer) => offer.createdAt)) / 1000);
export const union = (lists: readonly (readonly string[])[]) => [...new Set(lists.flat())];

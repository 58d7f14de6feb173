import { ratesToUsd, unitUsd, type Health, type Offer, type Rates } from '#gateway';
import { SUPPORTED_PARAMETERS } from './chat-schema.ts';

/** One entry of `data` of `GET /models`: both shapes of the listing in one object. */
export interface ModelItem {
  readonly id: string;
  readonly object: 'model';
  /** Epoch seconds. */
  readonly created: number;
  readonly owned_by: string;
  readonly name: string;
  readonly display_name: string;
  readonly providers: readonly ProviderItem[];
  readonly context_length: number;
  readonly architecture: { readonly input_modalities: readonly string[]; readonly output_modalities: readonly string[] };
  /** USD per token and per image of the cheapest provider, as decimal texts. */
  readonly pricing: { readonly prompt: string; readonly completion: string; readonly image: string };
  readonly supported_parameters: readonly string[];
}

interface ProviderItem {
  readonly id: string;
  readonly name: string;
  readonly pricing: ProviderPricing;
}

/** USD per 1M tokens, and per input image; null where images have no price of their own. */
interface ProviderPricing {
  readonly prompt: number;
  readonly completion: number;
  readonly image: number | null;
}

/** The offers of one model service as one entry. `offers` is not empty. */
export function viewModel(offers: readonly Offer[]): ModelItem {
  const cheapest = offers.reduce((best, offer) => (tokenRate(offer.price.rates) < tokenRate(best.price.rates) ? offer : best));
  const first = offers[0]!;
  return {
    id: first.service,
    object: 'model',
    created: createdOf(offers),
    owned_by: first.provider.name,
    name: first.service,
    display_name: first.displayName,
    providers: offers.map((offer) => ({ id: offer.provider.id, name: offer.provider.name, pricing: viewPricing(offer.price.rates) })),
    context_length: Math.max(...offers.map((offer) => offer.model?.contextLength ?? 0)),
    architecture: {
      input_modalities: union(offers.map((offer) => offer.model?.inputModalities ?? [])),
      output_modalities: union(offers.map((offer) => offer.model?.outputModalities ?? [])),
    },
    pricing: viewUnitPricing(cheapest.price.rates),
    supported_parameters: SUPPORTED_PARAMETERS,
  };
}

/** The offers of a tool, agent, image or video service as one entry. */
export function viewService(offers: readonly Offer[]): Record<string, unknown> {
  const first = offers[0]!;
  return {
    id: first.service,
    object: first.primitive,
    created: createdOf(offers),
    owned_by: first.provider.name,
    name: first.service,
    display_name: first.displayName,
    providers: offers.map((offer) => offer.provider.name),
    pricing: ratesToUsd(first.price.rates),
  };
}

/** `GET /models/{name}/endpoints`: who offers the model, at what price, and how well they have served it lately. */
export function viewEndpoints(offers: readonly Offer[], health: Pick<Health, 'available' | 'stats'>): Record<string, unknown> {
  const model = viewModel(offers);
  return {
    data: {
      id: model.id,
      name: model.display_name,
      created: model.created,
      description: '',
      architecture: model.architecture,
      endpoints: offers.map((offer) => viewEndpoint(offer, health)),
    },
  };
}

function viewEndpoint(offer: Offer, health: Pick<Health, 'available' | 'stats'>): Record<string, unknown> {
  const stats = health.stats(offer);
  return {
    name: `${offer.provider.name} | ${offer.service}`,
    provider_name: offer.provider.name,
    provider_id: offer.provider.id,
    context_length: offer.model?.contextLength ?? 0,
    max_completion_tokens: offer.model?.maxOutputTokens ?? null,
    pricing: viewUnitPricing(offer.price.rates),
    status: health.available(offer) ? 'healthy' : 'cooling_down',
    uptime_last_1h: stats.uptime,
    latency: stats.latencyMs,
    throughput: stats.throughput,
    requests: stats.requests,
    flags: stats.flags,
    supported_parameters: SUPPORTED_PARAMETERS,
  };
}

/** By service name, in the order of the names. */
export function byService(offers: readonly Offer[]): readonly (readonly Offer[])[] {
  return [...Map.groupBy(offers, (offer) => offer.service)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

function viewPricing(rates: Rates): ProviderPricing {
  const { prompt = 0, completion = 0, image } = ratesToUsd(rates);
  return { prompt, completion, image: image ?? null };
}

function viewUnitPricing(rates: Rates): ModelItem['pricing'] {
  return { prompt: unitUsd(rates.prompt ?? 0n), completion: unitUsd(rates.completion ?? 0n), image: unitUsd(rates.image ?? 0n) };
}

const tokenRate = (rates: Rates) => (rates.prompt ?? 0n) + (rates.completion ?? 0n);
const createdOf = (offers: readonly Offer[]) => Math.floor(Math.min(...offers.map((offer) => offer.createdAt)) / 1000);
const union = (lists: readonly (readonly string[])[]) => [...new Set(lists.flat())];

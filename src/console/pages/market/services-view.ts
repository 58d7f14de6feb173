import { contextDeclared, type Primitive } from '#config';
import {
  byService,
  compare,
  descriptionOf,
  inOneList,
  type Offer,
  type PriceView,
  type HealthSources,
  type HealthView,
  viewPrice,
  viewHealth,
  viewStops,
} from '#catalog';
import { type ProviderStatus, statusOf } from './providers-view.ts';
import { typicalSeconds, typicalUsd } from './typical-use.ts';

interface ServiceRow {
  readonly primitive: Primitive;
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  readonly status: ProviderStatus;
  readonly uptime: number | null;
  readonly requests: number;
  readonly listed_since: string;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
  readonly context_length: number | null;
  readonly max_output_tokens: number | null;
  readonly resolutions: readonly string[];
  readonly durations: readonly string[];
  readonly aspect_ratios: readonly string[];
  readonly formats: readonly string[];
  readonly supported_parameters: readonly string[];
  /** Of all providers: false if one of them does not stop. */
  readonly stops: boolean | null;
  readonly stops_whole: boolean | null;
  /** The price of the provider for which the typical cost is lowest. */
  readonly pricing: PriceView;
  readonly typical_usd: number;
  /** Length of the typical video. null for other kinds. */
  readonly typical_seconds: number | null;
  readonly providers: readonly ProviderName[];
}

interface ProviderName {
  readonly id: string;
  readonly name: string;
}

interface ServiceOffer extends HealthView, ProviderName {
  readonly pricing: PriceView;
  readonly typical_usd: number;
  readonly reached: 'direct' | 'tunnel';
  readonly listed_since: string;
  readonly context_length: number | null;
  readonly max_output_tokens: number | null;
}

/** Longest description in the list, in characters. */
const DESCRIPTION_MAX = 200;

/** The services of some kinds, sorted by kind and name, those of the operator first. */
export function* viewServiceRows(
  primitives: readonly Primitive[],
  offers: (primitive: Primitive) => readonly Offer[],
  healthSources: HealthSources,
): Generator<ServiceRow, void, undefined> {
  for (const primitive of primitives)
    for (const group of inOneList(byService(offers(primitive)))) {
      const row = viewRow(group, healthSources);
      const { description } = row;
      yield description.length > DESCRIPTION_MAX
        ? { ...row, description: `${description.slice(0, DESCRIPTION_MAX - 1)}…` }
        : row;
    }
}

/** One service with its providers, the cheapest first. `group` are all its offers, at least one. */
export function viewServiceOfKind(
  group: readonly Offer[],
  healthSources: HealthSources,
): Omit<ServiceRow, 'providers'> & { readonly providers: readonly ServiceOffer[] } {
  const offers = group.map((offer) => viewOffer(offer, healthSources));
  return {
    ...viewRow(group, healthSources),
    providers: offers.sort((a, b) => a.typical_usd - b.typical_usd || compare(a.id, b.id)),
  };
}

function viewRow(group: readonly Offer[], healthSources: HealthSources): ServiceRow {
  const { primitive, service, displayName } = group[0]!;
  let requests = 0;
  let failures = 0;
  let listedSince = Infinity;
  let cheapest: Pick<ServiceRow, 'pricing' | 'typical_usd' | 'typical_seconds'> | null = null;
  for (const offer of group) {
    const { lastHour } = healthSources.health.stats(offer);
    requests += lastHour.requests;
    failures += lastHour.failures;
    listedSince = Math.min(listedSince, offer.createdAt);
    const pricing = viewPrice(offer);
    const usd = typicalUsd(offer, pricing);
    const typical_seconds = primitive === 'video' ? typicalSeconds(offer.media?.durations ?? []) : null;
    if (cheapest === null || usd < cheapest.typical_usd) cheapest = { pricing, typical_usd: usd, typical_seconds };
  }
  return {
    primitive,
    name: service,
    display_name: displayName,
    description: descriptionOf(group),
    status: statusOf(group, healthSources),
    uptime: requests === 0 ? null : 1 - failures / requests,
    requests,
    listed_since: new Date(listedSince).toISOString(),
    ...abilitiesOf(group),
    ...cheapest!,
    providers: group.map(({ provider }) => ({ id: provider.id, name: provider.name })),
  };
}

function abilitiesOf(group: readonly Offer[]) {
  const all = (list: (offer: Offer) => readonly string[] | undefined) => [
    ...new Set(group.flatMap((offer) => list(offer) ?? [])),
  ];
  const edits = group.some(({ media }) => media?.imageApi?.edits === true);
  const outputs = { model: [], tool: [], agent: [], image: ['image'], video: ['video'] } as const;
  const { primitive } = group[0]!;
  const isMedia = primitive === 'image' || primitive === 'video';
  return {
    input_modalities: isMedia ? ['text', ...(edits ? ['image'] : [])] : all(({ model }) => model?.inputModalities),
    output_modalities: isMedia ? outputs[primitive] : all(({ model }) => model?.outputModalities),
    context_length: largest(group.map(({ model }) => (model ? contextDeclared(model) : null))),
    max_output_tokens: largest(group.map(({ model }) => model?.maxOutputTokens ?? null)),
    resolutions: all(({ media }) => media?.resolutions),
    durations: all(({ media }) => media?.durations),
    aspect_ratios: all(({ media }) => media?.aspectRatios),
    formats: all(({ media }) => media?.formats),
    supported_parameters: all(({ model, media }) =>
      model === null ? media?.supportedParams : model.forward === 'all' ? [] : model.forward,
    ),
    ...viewStops(group),
  };
}

function largest(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function viewOffer(offer: Offer, healthSources: HealthSources): ServiceOffer {
  const pricing = viewPrice(offer);
  return {
    id: offer.provider.id,
    name: offer.provider.name,
    pricing,
    typical_usd: typicalUsd(offer, pricing),
    reached: offer.endpoint.kind,
    listed_since: new Date(offer.createdAt).toISOString(),
    context_length: offer.model ? contextDeclared(offer.model) : null,
    max_output_tokens: offer.model?.maxOutputTokens ?? null,
    ...viewHealth(offer, healthSources),
  };
}

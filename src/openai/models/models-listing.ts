import { type Primitive, contextDeclared } from '#config';
import {
  byService,
  inOneList,
  type Catalog,
  type HealthSources,
  type Offer,
  type OfferStatus,
  slugOf,
  viewHealth,
  viewPrice,
  viewStops,
} from '#catalog';
import { GatewayError } from '#errors';
import { createPageEntries, type PageMembers } from '#http';
import { chats } from '../model-kinds.ts';
import { viewMediaEntry, mediaPricing } from './media-models.ts';
import {
  viewImageModel,
  viewModel,
  viewService,
  viewVideoModel,
  parametersOf,
  viewUnitPricing,
} from './models-view.ts';
import { aliasOf } from '../translated/service-names.ts';
import { LIMIT_MAX, type ListingFilter, type ListingType } from './models-schema.ts';

/** The selection of a listing. `type` null: chat models, agents and tools. */
export interface ListingOf {
  readonly type: ListingType | null;
  readonly filter: ListingFilter | null;
  /** Entries of `data` to skip. */
  readonly offset: number;
  /** Most entries of `data`; null for all. */
  readonly limit: number | null;
  /** The address of the listing, for the link to its next page. Default: that of the public list. */
  readonly path?: string;
  /** Kinds of output: `data` has all models that make one of them. Default: `data` has chat models. */
  readonly modalities?: readonly string[] | 'all';
  /** Codex looks for `models`, of its own kind. It takes an empty list of them, but no answer without one. */
  readonly forCodex?: boolean;
}

export function viewListing(
  catalog: Pick<Catalog, 'offers'>,
  { type, filter, offset, limit, path = '/api/v1/models', modalities, forCodex = false }: ListingOf,
): PageMembers & { readonly total_count: number } {
  const offered = (primitive: Primitive) => byService(catalog.offers(primitive));
  const models = filter !== 'agents';
  const agents = filter === 'agents' || (filter === null && type === null);
  const listed = models ? listedOf(offered, type, modalities) : [];
  const end = offset + (limit ?? inOneList(listed.slice(offset)).length);
  return {
    object: 'list',
    data: entriesOf(listed.slice(offset, end)),
    total_count: listed.length,
    links: {
      next:
        end < listed.length
          ? nextPage(path, {
              type,
              filter,
              offset: end,
              limit: limit ?? LIMIT_MAX,
              ...(modalities ? { modalities } : {}),
            })
          : null,
    },
    agents: servicesOfPage(agents ? inOneList(offered('agent')) : []),
    image_models: imagesOfPage(models && (type === 'image' || type === 'all') ? inOneList(offered('image')) : []),
    video_models: videosOfPage(models && (type === 'video' || type === 'all') ? inOneList(offered('video')) : []),
    tools: servicesOfPage(agents ? inOneList(offered('tool')) : []),
    ...(forCodex ? { models: [] } : {}),
  };
}

function listedOf(
  offered: (primitive: Primitive) => readonly (readonly Offer[])[],
  type: ListingOf['type'],
  modalities: ListingOf['modalities'],
): readonly (readonly Offer[])[] {
  if (modalities !== undefined)
    return [...offered('model'), ...offered('image'), ...offered('video')].filter((offers) =>
      makes(offers, modalities),
    );
  if (type === 'image' || type === 'video') return [];
  // Clients take this list for their menu of chat models, so it has no model that refuses every chat.
  return type === 'all' ? offered('model') : offered('model').filter(canChat);
}

const canChat = (offers: readonly Offer[]): boolean => offers.some(({ model }) => model !== null && chats(model));

function makes(offers: readonly Offer[], modalities: readonly string[] | 'all'): boolean {
  if (modalities === 'all') return true;
  return offers.some(({ primitive, model }) =>
    (model?.outputModalities ?? [primitive]).some((kind) => modalities.includes(kind)),
  );
}

/** One entry of `data`. `offers` is not empty. */
export const viewEntry = (offers: readonly Offer[]): object =>
  offers[0]!.primitive === 'model' ? viewModel(offers) : viewMediaEntry(offers);

const entriesOf = createPageEntries(viewEntry);
const servicesOfPage = createPageEntries(viewService);
const imagesOfPage = createPageEntries(viewImageModel);
const videosOfPage = createPageEntries(viewVideoModel);

function nextPage(
  path: string,
  { type, filter, offset, limit, modalities }: Pick<ListingOf, 'type' | 'filter' | 'offset' | 'limit' | 'modalities'>,
): string {
  const query = new URLSearchParams({
    ...(type ? { type } : {}),
    ...(filter ? { filter } : {}),
    ...(modalities ? { output_modalities: modalities === 'all' ? modalities : modalities.join(',') } : {}),
    offset: `${offset}`,
    limit: `${limit}`,
  });
  return `${path}?${query.toString()}`;
}

/**
 * `GET /models/{name}/endpoints`: the providers of a model of any kind, their prices, and how well they have served it
 * lately. `offers` is not empty.
 */
export function viewEndpoints(offers: readonly Offer[], healthSources: HealthSources): Record<string, unknown> {
  const { id, display_name, created, description, architecture } =
    offers[0]!.primitive === 'model' ? viewModel(offers) : viewMediaEntry(offers);
  return {
    data: {
      id,
      name: display_name,
      created,
      description,
      // Tokenizers and prompt formats are not known here.
      architecture: { ...architecture, tokenizer: null, instruct_type: null },
      endpoints: offers.map((offer) => viewEndpoint(offer, healthSources)),
    },
  };
}

/**
 * One offer of a model. `status` is a number, as other clients expect; `health` says the same as a word. Figures
 * that are not measured are null.
 */
function viewEndpoint(offer: Offer, healthSources: HealthSources): Record<string, unknown> {
  const { status: health, ...standing } = viewHealth(offer, healthSources);
  const isModel = offer.primitive === 'model';
  const chooses = isModel && chats(offer.model!);
  return {
    tag: slugOf(offer.provider.name),
    model_id: offer.service,
    model_name: offer.displayName,
    name: `${offer.provider.name} | ${offer.service}`,
    provider_name: offer.provider.name,
    provider_id: offer.provider.id,
    // Other clients refuse a null here, so it is the context that locks are computed from.
    context_length: offer.model?.contextLength ?? 0,
    max_completion_tokens: offer.model?.maxOutputTokens ?? null,
    max_prompt_tokens: null,
    quantization: offer.model?.quantization ?? null,
    data_collection: (offer.model ?? offer.media)?.collectsNothing ? 'deny' : 'allow',
    zdr: (offer.model ?? offer.media)?.zdr === true,
    region: (offer.model ?? offer.media)?.region ?? null,
    ...viewStops([offer]),
    pricing: isModel ? viewUnitPricing(offer.price.rates) : mediaPricing(offer, viewPrice(offer)),
    status: STATUS_NUMBERS[health],
    health,
    ...standing,
    latency_last_30m: null,
    throughput_last_30m: null,
    uptime_last_5m: null,
    uptime_last_30m: null,
    uptime_last_1d: null,
    supports_implicit_caching: false,
    supports_tool_choice: { auto: chooses, none: chooses, required: chooses, function: chooses },
    supported_parameters: isModel ? parametersOf(offer) : (offer.media?.supportedParams ?? []),
    ...(offer.model?.imageTokensMax ? { image_tokens_max: offer.model.imageTokensMax } : {}),
    ...(offer.model?.hiddenReasoning ? { hidden_reasoning_tokens: offer.model.hiddenReasoning } : {}),
  };
}

/** 0: the offer can be called. Below 0: it cannot be called at the moment. */
const STATUS_NUMBERS: Readonly<Record<OfferStatus, number>> = {
  healthy: 0,
  untried: 0,
  failing: 0,
  cooling_down: -1,
  away: -2,
};

/** A chat model as clients of Anthropic's API list it. */
interface AnthropicModel {
  readonly type: 'model';
  readonly id: string;
  readonly display_name: string;
  /** RFC 3339. */
  readonly created_at: string;
  readonly lifecycle: 'active';
  /** The largest context that a provider declares; null if none does. */
  readonly max_input_tokens: number | null;
  /** The most tokens of an answer that a provider declares; null if none does. */
  readonly max_tokens: number | null;
  /** Strict clients require these members. Nothing is known of them here. */
  readonly capabilities: null;
  readonly deprecated_at: null;
  readonly line: null;
  readonly retires_at: null;
}

export interface AnthropicPage {
  /** Id after which the page begins. */
  readonly after_id?: string;
  /** Id before which it ends. */
  readonly before_id?: string;
  /** Most models of the page. Default: all. */
  readonly limit?: number;
}

/** One model in the shape of Anthropic's API. `offers` is not empty. `isModel`: whether a model of a name exists. */
export function viewAnthropicModel(offers: readonly Offer[], isModel: (name: string) => boolean): AnthropicModel {
  const { service, displayName } = offers[0]!;
  return {
    type: 'model',
    // Claude Code ignores models with other names.
    id: aliasOf(service, isModel),
    display_name: displayName,
    created_at: new Date(Math.min(...offers.map((offer) => offer.createdAt))).toISOString(),
    lifecycle: 'active',
    max_input_tokens: largest(offers.map(({ model }) => (model ? contextDeclared(model) : null))),
    max_tokens: largest(offers.map(({ model }) => model?.maxOutputTokens ?? null)),
    capabilities: null,
    deprecated_at: null,
    line: null,
    retires_at: null,
  };
}

function largest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/**
 * The list that clients of Anthropic's API read. Throws GatewayError `invalid_request` for an id that is not in the
 * list.
 */
export function viewAnthropicModels(
  catalog: Pick<Catalog, 'offers' | 'knows'>,
  { after_id: after, before_id: before, limit }: AnthropicPage,
) {
  const isModel = (name: string) => catalog.knows(name, 'model');
  const models = byService(catalog.offers('model')).filter(canChat);
  const place = (id: string, param: string) => {
    const alias = aliasOf(id, isModel);
    const at = models.findIndex(([first]) => [id, alias].includes(aliasOf(first!.service, isModel)));
    if (at === -1)
      throw new GatewayError('invalid_request', `${param} must be the id of a model in this list`, { param });
    return at;
  };
  const first = after === undefined ? 0 : place(after, 'after_id') + 1;
  const end = before === undefined ? models.length : place(before, 'before_id');
  const room = limit ?? models.length;
  // With `before_id`, the page ends before that model.
  const from = before === undefined ? first : Math.max(first, end - room);
  const data = models.slice(from, Math.min(end, from + room)).map((offers) => viewAnthropicModel(offers, isModel));
  const hasMore = before === undefined ? from + data.length < end : from > first;
  return { data, has_more: hasMore, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

import type { Primitive } from '#config';
import { byService, type Catalog, type Offer } from '#gateway';
import { chats } from '../embeddings/is-embedder.ts';
import { viewMediaEntry } from './media-models.ts';
import { viewImageModel, viewModel, viewService, viewVideoModel } from './models-view.ts';

export const TYPES = ['chat', 'image', 'video', 'all'] as const;
export const FILTERS = ['models', 'agents'] as const;

/** The selection of a listing. `type` null: chat models, agents and tools. */
export interface ListingOf {
  readonly type: (typeof TYPES)[number] | null;
  readonly filter: (typeof FILTERS)[number] | null;
  /** Entries of `data` to skip. */
  readonly offset: number;
  /** Most entries of `data`; null for all. */
  readonly limit: number | null;
  /** Names that the caller's key may use; null for all. */
  readonly services: readonly string[] | null;
  /** The address of the listing, for the link to its next page. Default: that of the public list. */
  readonly path?: string;
  /** Kinds of output: `data` has all models that make one of them. Default: `data` has chat models. */
  readonly modalities?: readonly string[] | 'all';
}

/** The listing of all services that can be called and match the selection. */
export function viewListing(
  catalog: Pick<Catalog, 'offers'>,
  { type, filter, offset, limit, services, path = '/api/v1/models', modalities }: ListingOf,
): Record<string, unknown> {
  const offered = (primitive: Primitive) => servicesOf(catalog, primitive, services);
  const models = filter !== 'agents';
  const agents = filter === 'agents' || (filter === null && type === null);
  const listed = models ? listedOf(offered, type, modalities) : [];
  const end = limit === null ? listed.length : offset + limit;
  return {
    object: 'list',
    data: listed.slice(offset, end).map(viewEntry),
    total_count: listed.length,
    links: {
      next:
        end < listed.length
          ? nextPage(path, { type, filter, offset: end, limit: limit!, ...(modalities ? { modalities } : {}) })
          : null,
    },
    agents: agents ? offered('agent').map(viewService) : [],
    image_models: models && (type === 'image' || type === 'all') ? offered('image').map(viewImageModel) : [],
    video_models: models && (type === 'video' || type === 'all') ? offered('video').map(viewVideoModel) : [],
    tools: agents ? offered('tool').map(viewService) : [],
  };
}

/** The services of `data`. */
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

/** Whether one of the offers of a model can be called for chat. */
export const canChat = (offers: readonly Offer[]): boolean =>
  offers.some(({ model }) => model !== null && chats(model));

/** Whether one of these offers makes one of these kinds of output. */
function makes(offers: readonly Offer[], modalities: readonly string[] | 'all'): boolean {
  if (modalities === 'all') return true;
  return offers.some(({ primitive, model }) =>
    (model?.outputModalities ?? [primitive]).some((kind) => modalities.includes(kind)),
  );
}

/** One entry of `data`. `offers` is not empty. */
export const viewEntry = (offers: readonly Offer[]): object =>
  offers[0]!.primitive === 'model' ? viewModel(offers) : viewMediaEntry(offers);

/** The offers of a primitive, grouped by service. If `services` is not null, only of these services. */
export function servicesOf(
  catalog: Pick<Catalog, 'offers'>,
  primitive: Primitive,
  services: readonly string[] | null,
): readonly (readonly Offer[])[] {
  const all = byService(catalog.offers(primitive));
  return services === null ? all : all.filter(([first]) => services.includes(first!.service));
}

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

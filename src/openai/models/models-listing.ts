import type { Primitive } from '#config';
import { byService, type Catalog, type Offer } from '#gateway';
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
}

/** The listing of all services that can be called and match the selection. */
export function viewListing(
  catalog: Pick<Catalog, 'offers'>,
  { type, filter, offset, limit, services, path = '/api/v1/models' }: ListingOf,
): Record<string, unknown> {
  const offered = (primitive: Primitive) => servicesOf(catalog, primitive, services);
  const models = filter !== 'agents';
  const agents = filter === 'agents' || (filter === null && type === null);
  const chat = models && (type === null || type === 'chat' || type === 'all') ? offered('model') : [];
  const end = limit === null ? chat.length : offset + limit;
  return {
    object: 'list',
    data: chat.slice(offset, end).map(viewModel),
    total_count: chat.length,
    links: { next: end < chat.length ? nextPage(path, { type, filter, offset: end, limit: limit! }) : null },
    agents: agents ? offered('agent').map(viewService) : [],
    image_models: models && (type === 'image' || type === 'all') ? offered('image').map(viewImageModel) : [],
    video_models: models && (type === 'video' || type === 'all') ? offered('video').map(viewVideoModel) : [],
    tools: agents ? offered('tool').map(viewService) : [],
  };
}

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
  { type, filter, offset, limit }: Pick<ListingOf, 'type' | 'filter' | 'offset' | 'limit'>,
): string {
  const query = new URLSearchParams({
    ...(type ? { type } : {}),
    ...(filter ? { filter } : {}),
    offset: `${offset}`,
    limit: `${limit}`,
  });
  return `${path}?${query.toString()}`;
}

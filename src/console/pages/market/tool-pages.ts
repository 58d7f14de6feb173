import { GatewayError } from '#errors';
import { dropOldest } from '#wire';
import {
  type Catalog,
  type HealthSources,
  type ToolListings,
  type Offer,
  byService,
  inOneList,
  descriptionOf,
  primitivesOf,
  viewPrice,
  type PriceView,
  viewHealth,
  type HealthView,
  compare,
  viewDefinition,
  viewLeftOut,
  type DefinitionView,
  type ListedTool,
  byPrice,
  viewToolCallPrice,
  type ToolCallPrice,
} from '#catalog';
import { createFreshPage, type TaggedPage } from '#http';
import type { Primitive } from '#config';
import { statusOf, type ProviderStatus } from './providers-view.ts';

export interface MarketDeps extends HealthSources {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  /** Without this, tool services are listed without their tools. */
  readonly listings?: ToolListings;
  readonly now: () => number;
}

/** Limits of the list of all services: tools of one service, tools in total, and characters of a description. */
const LIST = { perService: 100, all: 5_000, descriptionMax: 500 } as const;

/** Characters of the definitions whose schemas a page shows. A tool beyond them has null: MCP lists all. */
const SCHEMAS_MAX = 512 * 1024;

/** The most pages of single services that are cached. One page may have megabytes of schemas. */
const PAGES_MAX = 16;

/**
 * Creates a function that returns the page of all tool services, or of one service with all its tools. The function
 * throws GatewayError `not_found`, or `invalid_request` if the schemas of all services are requested.
 */
export function createToolPages(deps: MarketDeps): (service: string | null, schemas: boolean) => Promise<TaggedPage> {
  const { catalog, listings } = deps;
  const version = () => catalog.version() + (listings?.version() ?? 0);
  const fresh = (rows: () => Iterable<object>) => createFreshPage(rows, { version, now: deps.now });

  const list = fresh(() => {
    let remaining: number = LIST.all;
    return viewWithTools(
      deps,
      catalog.offers('tool'),
      () => ({
        max: Math.min(LIST.perService, remaining),
        descriptionMax: LIST.descriptionMax,
        schemas: false,
        all: false,
      }),
      (count) => (remaining -= count),
    );
  });

  const pages = new Map<string, () => Promise<TaggedPage>>();
  return (service, schemas) => {
    if (service === null) {
      if (schemas)
        throw new GatewayError(
          'invalid_request',
          'schemas needs service, because input schemas are shown only for one service at a time',
          {
            param: 'schemas',
          },
        );
      return list();
    }
    // For an unknown service this throws before a page is cached.
    catalog.resolve(service, 'tool');
    const key = `${schemas} ${service}`;
    const page =
      pages.get(key) ??
      fresh(() =>
        viewWithTools(deps, catalog.resolve(service, 'tool').offers, () => ({
          max: Infinity,
          descriptionMax: Infinity,
          schemas,
          all: true,
        })),
      );
    pages.delete(key);
    pages.set(key, page);
    dropOldest(pages, PAGES_MAX);
    return page();
  };
}

function* viewWithTools(
  deps: MarketDeps,
  offers: ReturnType<Catalog['offers']>,
  options: () => ToolViewOptions,
  onShown: (tools: number) => void = () => {},
): Generator<ServiceView, void, undefined> {
  const services = viewServices(offers, deps.catalog.offers(), deps);
  if (!deps.listings) return yield* services;
  const groups = Map.groupBy(offers, ({ service }) => service);
  for (const service of services) {
    const tools = viewTools(groups.get(service.name)!, deps.listings, options());
    onShown(tools.tools?.length ?? 0);
    yield { ...service, ...tools };
  }
}

/**
 * A tool or an agent in the catalogue, with all its providers. It has a list of tools if the tools of at least one
 * provider are known.
 */
interface ServiceView extends Partial<ServiceToolsView> {
  readonly id: string;
  readonly name: string;
  readonly display_name: string;
  readonly description: string;
  /** All primitives that one of its providers offers under this name: one listing, several routes. */
  readonly primitives: readonly Primitive[];
  readonly status: ProviderStatus;
  readonly providers: readonly ServiceProviderView[];
}

interface ServiceProviderView extends HealthView {
  readonly id: string;
  readonly name: string;
  readonly primitives: readonly Primitive[];
  readonly pricing: PriceView;
}

/** The services of one primitive as `byService` sorts them. `all` are the offers of every primitive. */
export function* viewServices(
  offers: readonly Offer[],
  all: readonly Offer[],
  healthSources: HealthSources,
): Generator<ServiceView, void, undefined> {
  const listings = Map.groupBy(all, listingKey);
  for (const group of inOneList(byService(offers)))
    yield viewService(group, (offer) => listings.get(listingKey(offer)) ?? [offer], healthSources);
}

/**
 * One service as an entry. `offers` has at least one offer. `offersOf` returns all offers that form one listing with an
 * offer.
 */
export function viewService(
  offers: readonly Offer[],
  offersOf: (offer: Offer) => readonly Offer[],
  healthSources: HealthSources,
): ServiceView {
  const { service, displayName } = offers[0]!;
  return {
    id: service,
    name: service,
    display_name: displayName,
    description: descriptionOf(offers),
    primitives: primitivesOf(offers.flatMap(offersOf)),
    status: statusOf(offers, healthSources),
    providers: offers.map((offer) => ({
      id: offer.provider.id,
      name: offer.provider.name,
      primitives: primitivesOf(offersOf(offer)),
      pricing: viewPrice(offer),
      ...viewHealth(offer, healthSources),
    })),
  };
}

/** The space separates the two, because a provider's id contains no space. */
const listingKey = ({ provider, service }: Offer) => `${provider.id} ${service}`;

interface ServiceToolsView {
  /** Sorted by name. null while they are unknown. */
  readonly tools: readonly ToolView[] | null;
  /** The number of all tools, also if `tools` is cut. */
  readonly tools_total: number;
  readonly left_out?: readonly object[];
}

interface ToolView {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly price: ToolCallPrice;
  readonly definition: DefinitionView;
  readonly input_schema?: unknown;
}

interface ToolViewOptions {
  readonly max: number;
  readonly descriptionMax: number;
  readonly schemas: boolean;
  /** Shows what is left out, too. */
  readonly all: boolean;
}

const viewLeftOutOf = (offer: Offer, listings: ToolListings) =>
  listings.leftOutOf(offer).map((one) => ({ provider: offer.provider.name, ...viewLeftOut(one) }));

/** The tools of a service. If several of its definers list a tool, the first one describes it. */
function viewTools(
  offers: readonly Offer[],
  listings: ToolListings,
  { max, descriptionMax, schemas, all }: ToolViewOptions,
): ServiceToolsView {
  const byName = new Map<string, readonly [ListedTool, Offer]>();
  let known = false;
  for (const offer of listings.definers(offers)) {
    const tools = listings.toolsOf(offer);
    known ||= tools !== null;
    for (const tool of tools ?? []) if (!byName.has(tool.name)) byName.set(tool.name, [tool, offer]);
  }
  if (!known) return { tools: null, tools_total: 0 };
  const page = [...byName.values()].sort(([a], [b]) => compare(a.name, b.name)).slice(0, max);
  let remaining = schemas ? SCHEMAS_MAX : 0;
  return {
    tools: page.map(([tool, offer]) => ({
      name: tool.name,
      title: tool.title,
      description: tool.description.slice(0, descriptionMax),
      price: viewToolCallPrice(offer, tool.name, offers),
      definition: viewDefinition(tool.definition),
      ...(schemas ? { input_schema: (remaining -= tool.size) < 0 ? null : (tool.inputSchema ?? null) } : {}),
    })),
    tools_total: byName.size,
    ...(all ? { left_out: byPrice(offers).flatMap((offer) => viewLeftOutOf(offer, listings)) } : {}),
  };
}

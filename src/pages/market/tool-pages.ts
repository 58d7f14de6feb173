import { GatewayError, dropOldest } from '#wire';
import { type Catalog, type HealthSources, createFreshPage, type TaggedPage, type ToolListings } from '#gateway';
import { viewServices } from './tool-agent-view.ts';
import { viewTools, type ToolViewOptions } from './tool-view.ts';

export interface MarketDeps extends HealthSources {
  readonly catalog: Pick<Catalog, 'offers' | 'resolve' | 'version'>;
  /** Without this, tool services are listed without their tools. */
  readonly listings?: ToolListings;
  readonly now: () => number;
}

/** Limits of the list of all services: tools of one service, tools in total, and characters of a description. */
const LIST = { perService: 100, all: 5_000, descriptionMax: 500 } as const;

/** The most pages of single services that are cached. One page may have megabytes of schemas. */
const PAGES_MAX = 16;

/**
 * Creates a function that returns the page of all tool services, or of one service with all its tools. The function
 * throws GatewayError `not_found`, or `invalid_request` if the schemas of all services are requested.
 */
export function createToolPages(deps: MarketDeps): (service: string | null, schemas: boolean) => TaggedPage {
  const { catalog, listings } = deps;
  const version = () => catalog.version() + (listings?.version() ?? 0);
  const fresh = (data: () => unknown) => createFreshPage(() => ({ data: data() }), { version, now: deps.now });

  const list = fresh(() => {
    let left: number = LIST.all;
    return view(
      catalog.offers('tool'),
      () => ({ max: Math.min(LIST.perService, left), descriptionMax: LIST.descriptionMax, schemas: false }),
      (shown) => (left -= shown),
    );
  });

  function view(
    offers: ReturnType<Catalog['offers']>,
    options: () => ToolViewOptions,
    onShown: (tools: number) => void = () => {},
  ) {
    const services = viewServices(offers, catalog.offers(), deps);
    if (!listings) return services;
    const groups = Map.groupBy(offers, ({ service }) => service);
    return services.map((service) => {
      const tools = viewTools(groups.get(service.name)!, listings, options());
      onShown(tools.tools?.length ?? 0);
      return { ...service, ...tools };
    });
  }

  const pages = new Map<string, () => TaggedPage>();
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
        view(catalog.resolve(service, 'tool').offers, () => ({ max: Infinity, descriptionMax: Infinity, schemas })),
      );
    pages.delete(key);
    pages.set(key, page);
    dropOldest(pages, PAGES_MAX);
    return page();
  };
}

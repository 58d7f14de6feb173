import { isDeepStrictEqual } from 'node:util';
import type { Access } from '#accounts';
import { type Catalog, type LeftOut, type Offer, type ToolListings, type ToolPins, byPrice } from '#catalog';
import { fetchLists, type FetchDeps, type FetchLimits, type ListedItem } from './fetch-lists.ts';
import { KINDS, type ListKind } from '../wire/own-messages.ts';
import { type ServerListing, type ToolEntry, makeListing } from './listing.ts';
import { createRefresher, type RefresherOptions } from './refresher.ts';
import { type Searched, searchTools } from './search-index.ts';

export interface FoundTool extends ServiceTool {
  readonly service: string;
}

interface FindOptions {
  readonly limit: number;
  readonly services: readonly string[] | null;
  readonly access?: Access | null;
}

export interface ListChange {
  readonly service: string;
  readonly kinds: readonly ListKind[];
}

export interface ToolCatalogue extends ToolListings {
  toolsOf(offer: Offer): readonly ToolEntry[] | null;
  /** null if the server was never reached. */
  listingOf(offer: Offer): ServerListing | null;
  /** The parsed input schema of a tool; null if it is unknown. */
  schemaOf(offer: Offer, tool: string): object | null;
  /** Names of all tool services, sorted. */
  services(): readonly string[];
  /** When the oldest offer of the service was made, in epoch milliseconds. Infinity for an unknown service. */
  since(service: string): number;
  service(name: string): ServiceListing | null;
  /**
   * The tools that match the query's words best, best first. The same query on the same tools always gives the same
   * order.
   */
  find(query: string, options: FindOptions): Promise<readonly FoundTool[]>;
  stale(offer: Offer): void;
  /**
   * Asks the offer's server for its lists again, unless it was asked a short time ago. Resolves when it was asked, even
   * if it could not be reached.
   */
  renewed(offer: Offer): Promise<void>;
  onChanged(listener: (change: ListChange) => void): () => void;
  /**
   * Resolves when all servers of a service were asked once, even if they could not be reached. A server that did not
   * answer is asked again, unless it was asked a short time ago.
   */
  tried(service: string): Promise<void>;
  /** Resolves when every offer that can be reached was asked once. */
  settled(): Promise<void>;
  close(): void;
}

export interface ToolCatalogueOptions extends FetchDeps {
  readonly catalog: Pick<Catalog, 'offers' | 'version'>;
  readonly pins: ToolPins;
  readonly present?: (offer: Offer) => boolean;
  /** The network that the provider of an offer dials from; null if it is not known. Default: none is known. */
  readonly networkOf?: ((offer: Offer) => string | null) | undefined;
  readonly now: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number;
  readonly random: () => number;
  readonly onError: (error: Error, offer: Offer) => void;
  /** Called with what clients cannot read in the lists of a server, whenever that changes. Default: nobody is told. */
  readonly onLeftOut?: (leftOut: readonly LeftOut[], offer: Offer) => void;
  readonly refreshMs?: number;
  readonly gapMs?: number;
  readonly timeoutMs?: number;
  readonly concurrency?: number;
  readonly longMs?: number;
  readonly longMax?: number;
  readonly tickMs?: number;
  readonly limits?: Partial<CatalogueLimits>;
}

interface CatalogueLimits extends FetchLimits {
  /** Most characters of all services of one provider, with those of the indexes. */
  readonly providerSizeMax: number;
  /** Most characters of all listings, with those of the indexes. */
  readonly totalSizeMax: number;
}

const MIB = 1024 * 1024;
const LIMITS: CatalogueLimits = {
  pagesMax: 50,
  itemsMax: 2_000,
  itemMax: 64 * 1024,
  sizeMax: 4 * MIB,
  // Less than a whole refresh may take. Otherwise lists that never come would cost the server its tools.
  othersMs: 27_000,
  providerSizeMax: 16 * MIB,
  totalSizeMax: 512 * MIB,
};

/**
 * Reads the lists of all tool offers' servers in the background, for the gateway itself. A server is asked at once when
 * an offer appears, soon when it changes, and then at regular intervals. While a server cannot be reached, its last
 * lists stay. References in definitions are never followed.
 */
export function createToolCatalogue(options: ToolCatalogueOptions): ToolCatalogue {
  const { catalog, pins, now, onError, onLeftOut } = options;
  const limits = { ...LIMITS, ...options.limits };
  const listings = new Map<string, ServerListing>();
  const views = new Map<string, ServiceListing>();
  const listeners = new Set<(change: ListChange) => void>();
  let offers: ReadonlyMap<string, Offer> = new Map();
  let groups: ReadonlyMap<string, readonly Offer[]> = new Map();
  let names: readonly string[] = [];
  let seen = -1;
  let version = 0;

  const tell = (service: string, kinds: readonly ListKind[]) => {
    version++;
    for (const listener of listeners) listener({ service, kinds });
  };

  const refresher = createRefresher(refreshing(options, refresh));

  async function refresh(...[offer, signal, wait]: Parameters<RefresherOptions<Offer>['refresh']>): Promise<void> {
    const sizeMax = roomOf(offer, listings, offers, limits);
    const waiting: FetchDeps = {
      facts: (...args) => wait(options.facts(...args)),
      list: (...args) => wait(options.list(...args)),
    };
    const fetched = await fetchLists(offer, waiting, { ...limits, sizeMax }, signal);
    const before = listings.get(offer.id) ?? null;
    const pin = (definitions: ReadonlyMap<string, string>) =>
      pins.note(offer.provider.id, offer.service, definitions).catch((error: unknown) => {
        // The list itself is valid, and the known versions stay.
        onError(error as Error, offer);
        return null;
      });
    const listing = await makeListing({ offer, fetched, sizeMax, before, pin, now });
    if (signal.aborted || !offers.has(offer.id)) return;
    // Another list of the same provider, which was read at the same time, may have taken the room.
    if (listing.size > roomOf(offer, listings, offers, limits)) return refresh(offer, signal, wait);
    listings.set(offer.id, listing);
    const changed = KINDS.filter((kind) => listing.digests[kind] !== before?.digests[kind]);
    if (changed.length > 0) tell(offer.service, changed);
    if (!isDeepStrictEqual(listing.leftOut, before?.leftOut ?? [])) onLeftOut?.(listing.leftOut, offer);
    // What was read counts. The rest is reported and tried again like a list that could not be read at all.
    if (fetched.fault !== null) throw fetched.fault;
  }

  function sync(): void {
    if (seen === catalog.version()) return;
    seen = catalog.version();
    const before = groups;
    const all = catalog.offers('tool');
    offers = new Map(all.map((offer) => [offer.id, offer]));
    groups = Map.groupBy(all, ({ service }) => service);
    names = [...groups.keys()].sort();
    for (const id of listings.keys()) if (!offers.has(id)) listings.delete(id);
    for (const service of views.keys()) if (!groups.has(service)) views.delete(service);
    // Only services that were known before, because nothing is known of a new service yet.
    for (const [service, group] of before) if (shownOf(group) !== shownOf(groups.get(service))) tell(service, KINDS);
    refresher.keep(all);
  }

  const listingOf = ({ id }: Offer) => listings.get(id) ?? null;

  function service(name: string): ServiceListing | null {
    sync();
    const group = groups.get(name);
    if (!group) return null;
    let view = views.get(name);
    if (!view || !isCurrent(view, group, listingOf)) views.set(name, (view = mergeListings(group, listingOf)));
    return view;
  }

  // Lists must be known when somebody asks, even after a long time without requests.
  const watch = setInterval(sync, options.tickMs ?? 1_000).unref();
  sync();

  return {
    version: () => version,
    listingOf,
    toolsOf(offer) {
      const listing = listingOf(offer);
      return listing && [...listing.tools.values()];
    },
    leftOutOf: (offer) => listingOf(offer)?.leftOut ?? [],
    schemaOf: (offer, tool) => listingOf(offer)?.tools.get(tool)?.inputSchema ?? null,
    services() {
      sync();
      return names;
    },
    since: (name) => Math.min(...(groups.get(name) ?? []).map(({ createdAt }) => createdAt)),
    service,
    find(query, { limit, services, access = null }) {
      sync();
      return findTools(query, { limit, access }, (services ?? names).values().map(service));
    },
    stale: ({ id }) => void refresher.stale(id),
    renewed: ({ id }) => refresher.stale(id),
    onChanged(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async tried(name) {
      sync();
      await Promise.all((groups.get(name) ?? []).map(({ id }) => refresher.tried(id)));
    },
    settled() {
      sync();
      return refresher.settled();
    },
    close() {
      clearInterval(watch);
      refresher.close();
      listeners.clear();
    },
  };
}

const refreshing = (
  { present = () => true, onError, elapsed, random, ...options }: ToolCatalogueOptions,
  refresh: RefresherOptions<Offer>['refresh'],
): RefresherOptions<Offer> => ({
  refresh,
  idOf: ({ id }) => id,
  ownerOf: ({ provider }) => provider.id,
  networkOf: options.networkOf,
  present,
  now: elapsed,
  random,
  everyMs: options.refreshMs ?? 300_000,
  gapMs: options.gapMs ?? 10_000,
  timeoutMs: options.timeoutMs ?? 30_000,
  concurrency: options.concurrency ?? 8,
  concurrencyOfOwner: 2,
  longMs: options.longMs ?? 1_000,
  longMax: options.longMax ?? 24,
  tickMs: options.tickMs ?? 1_000,
  onFailed: (offer, error) => onError(error, offer),
});

/** Most characters that the lists of an offer may have, given the lists of the other offers. */
function roomOf(
  offer: Offer,
  listings: ReadonlyMap<string, ServerListing>,
  offers: ReadonlyMap<string, Offer>,
  { sizeMax, providerSizeMax, totalSizeMax }: CatalogueLimits,
): number {
  let total = 0;
  let own = 0;
  for (const [id, { size, index }] of listings) {
    if (id === offer.id) continue;
    const bytes = size + index.size;
    total += bytes;
    if (offers.get(id)?.provider.id === offer.provider.id) own += bytes;
  }
  return Math.max(0, Math.min(sizeMax, providerSizeMax - own, totalSizeMax - total));
}

async function findTools(
  query: string,
  { limit, access }: { readonly limit: number; readonly access: Access | null },
  services: Iterable<ServiceListing | null>,
): Promise<readonly FoundTool[]> {
  const matches = await searchTools(query, searchedOf(services), {
    limit,
    order: (a, b) => compare(a.value.service, b.value.service) || compare(a.name, b.name),
    ...(access === null ? {} : { admits: ({ service }, name) => access.allows(service, name) }),
  });
  return matches.map(({ value, name }) => ({ ...firstWith(value, name), service: value.service }));
}

/** A tool that a service has, without `tools` of the whole service. */
function firstWith({ listings, offers }: ServiceListing, name: string): ServiceTool {
  const at = listings.findIndex((listing) => listing?.tools.has(name));
  return { tool: listings[at]!.tools.get(name)!, offer: offers[at]! };
}

function* searchedOf(services: Iterable<ServiceListing | null>): Generator<Searched<ServiceListing>> {
  for (const view of services)
    if (view) yield [view, view.listings.filter((one) => one !== null).map(({ index }) => index)];
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/**
 * The facts about a service's offers that a client can notice. An offer that was registered again at the same price is
 * not a change.
 */
function shownOf(offers: readonly Offer[] | undefined): string {
  if (!offers) return '';
  const priceOf = ({ id, price, variants, priceCap }: Offer) =>
    `${id} ${price.id} ${priceCap} ${Object.entries(variants)
      .map(([name, { id: priceId }]) => `${name}=${priceId}`)
      .sort()
      .join()}`;
  return offers.map(priceOf).sort().join('\n');
}

/** A tool of a service, with the cheapest offer whose server lists it. */
export interface ServiceTool {
  readonly tool: ToolEntry;
  readonly offer: Offer;
}

/** Everything that any provider of a service lists. It stays the same object until something in it changes. */
export interface ServiceListing {
  readonly service: string;
  /** Cheapest first. */
  readonly offers: readonly Offer[];
  /** One listing for each offer; null if it is not known yet. */
  readonly listings: readonly (ServerListing | null)[];
  /** By name. Made at its first use, because most services are only counted or searched. */
  readonly tools: ReadonlyMap<string, ServiceTool>;
  readonly toolCount: number;
  /** The tools that have to be merged before `toolCount` is known; 0 if only one server is. */
  readonly mergeWork: number;
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
}

/** `offers`: all offers of one service. */
export function mergeListings(
  offers: readonly Offer[],
  listingOf: (offer: Offer) => ServerListing | null,
): ServiceListing {
  const ordered = byPrice(offers);
  return new Merged(ordered, ordered.map(listingOf));
}

class Merged implements ServiceListing {
  readonly service: string;
  readonly offers: readonly Offer[];
  readonly listings: readonly (ServerListing | null)[];
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  readonly #known: readonly ServerListing[];
  #tools: ReadonlyMap<string, ServiceTool> | null = null;

  constructor(offers: readonly Offer[], listings: readonly (ServerListing | null)[]) {
    const known = listings.filter((listing) => listing !== null);
    this.service = offers[0]!.service;
    this.offers = offers;
    this.listings = listings;
    this.resources = merge(known, 'resources');
    this.resourceTemplates = merge(known, 'resourceTemplates');
    this.prompts = merge(known, 'prompts');
    this.#known = known;
  }

  get tools(): ReadonlyMap<string, ServiceTool> {
    return (this.#tools ??= mergeTools(this.offers, this.listings));
  }

  get toolCount(): number {
    return this.#known.length <= 1 ? (this.#known[0]?.tools.size ?? 0) : this.tools.size;
  }

  get mergeWork(): number {
    return this.#tools || this.#known.length <= 1 ? 0 : this.#known.reduce((sum, { tools }) => sum + tools.size, 0);
  }
}

function mergeTools(
  offers: readonly Offer[],
  listings: readonly (ServerListing | null)[],
): ReadonlyMap<string, ServiceTool> {
  const tools = new Map<string, ServiceTool>();
  for (const [index, listing] of listings.entries())
    for (const [name, tool] of listing?.tools ?? [])
      if (!tools.has(name)) tools.set(name, { tool, offer: offers[index]! });
  return tools;
}

function merge(
  known: readonly ServerListing[],
  kind: 'resources' | 'resourceTemplates' | 'prompts',
): readonly ListedItem[] {
  if (known.length <= 1) return known[0]?.[kind] ?? [];
  const items = new Map<string, ListedItem>();
  for (const listing of known) for (const item of listing[kind]) if (!items.has(item.key)) items.set(item.key, item);
  return [...items.values()];
}

function isCurrent(
  { offers, listings }: ServiceListing,
  now: readonly Offer[],
  listingOf: (offer: Offer) => ServerListing | null,
): boolean {
  return (
    offers.length === now.length &&
    now.every((offer) => offers.includes(offer)) &&
    offers.every((offer, i) => listingOf(offer) === listings[i])
  );
}

import { isDeepStrictEqual } from 'node:util';
import type { Access } from '#accounts';
import { type Catalog, type LeftOut, type Offer, type ToolListings, type ToolPins, byPrice, compare } from '#catalog';
import { fetchLists, type FetchDeps, type FetchLimits, type ListedItem } from './fetch-lists.ts';
import { KINDS, type ListKind } from '../wire/own-messages.ts';
import { type ServerListing, type ToolEntry, makeListing } from './listing.ts';
import { createRefresher, type RefresherOptions } from './refresher.ts';
import { type OwnerOf, type Searched, searchTools } from './search-index.ts';

export interface FoundTool extends ServiceTool {
  readonly service: string;
}

interface FindOptions {
  readonly limit: number;
  readonly services: readonly string[] | null;
  readonly access?: Access | null;
  /** Whose tools get at most two places, and come after those of others with the same score. Default: nobody's. */
  readonly ownerOf?: OwnerOf<ServiceListing>;
}

export interface ListChange {
  readonly service: string;
  readonly kinds: readonly ListKind[];
  /** Those that the service has or had. */
  readonly offers: readonly Offer[];
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
  /** Whether the provider of an offer is one whom nobody has let in. Default: nobody is one. */
  readonly isStranger?: ((offer: Offer) => boolean) | undefined;
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
  /** Most characters of all listings of strangers. A network has as many as it leaves free. */
  readonly strangersSizeMax: number;
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
  strangersSizeMax: 128 * MIB,
};

/**
 * Reads the lists of all tool offers' servers in the background, for the gateway itself. A server is asked at once when
 * an offer appears, soon when it changes, and then at regular intervals. While a server cannot be reached, its last
 * lists stay. References in definitions are never followed.
 */
export function createToolCatalogue(options: ToolCatalogueOptions): ToolCatalogue {
  const { catalog, pins, now, onError, onLeftOut, isStranger = () => false, networkOf = () => null } = options;
  const limits = { ...LIMITS, ...options.limits };
  const listings = new Map<string, ServerListing>();
  const views = new Map<string, ServiceListing>();
  const listeners = new Set<(change: ListChange) => void>();
  let offers: ReadonlyMap<string, Offer> = new Map();
  let groups: ReadonlyMap<string, readonly Offer[]> = new Map();
  let names: readonly string[] = [];
  let seen = -1;
  let version = 0;

  const tell = (change: ListChange) => {
    version++;
    for (const listener of listeners) listener(change);
  };

  const refresher = createRefresher(refreshing(options, refresh));

  /** Most characters that the lists of an offer may have, given those of the others. */
  function roomOf(offer: Offer): number {
    const partyOf = (one: Offer) => networkOf(one) ?? one.provider.id;
    const party = partyOf(offer);
    const used = { all: 0, own: 0, strangers: 0, party: 0 };
    for (const [id, { size, index }] of listings) {
      const other = offers.get(id);
      if (id === offer.id || other === undefined) continue;
      const characters = size + index.size;
      used.all += characters;
      if (other.provider.id === offer.provider.id) used.own += characters;
      if (!isStranger(other)) continue;
      used.strangers += characters;
      if (partyOf(other) === party) used.party += characters;
    }
    const { sizeMax, providerSizeMax, totalSizeMax, strangersSizeMax } = limits;
    const ofStrangers = isStranger(offer) ? strangersSizeMax - used.strangers - used.party : Infinity;
    return Math.max(0, Math.min(sizeMax, providerSizeMax - used.own, totalSizeMax - used.all, ofStrangers));
  }

  async function refresh(...[offer, signal, wait]: Parameters<RefresherOptions<Offer>['refresh']>): Promise<void> {
    const sizeMax = roomOf(offer);
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
    if (listing.size > roomOf(offer)) return refresh(offer, signal, wait);
    listings.set(offer.id, listing);
    const changed = KINDS.filter((kind) => listing.digests[kind] !== before?.digests[kind]);
    if (changed.length > 0)
      tell({ service: offer.service, kinds: changed, offers: groups.get(offer.service) ?? [offer] });
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
    for (const [service, group] of before) {
      const after = groups.get(service);
      if (shownOf(group) !== shownOf(after)) tell({ service, kinds: KINDS, offers: [...group, ...(after ?? [])] });
    }
    refresher.keep(all);
  }

  const listingOf = ({ id }: Offer) => listings.get(id) ?? null;

  /**
   * A service belongs to the operator and those that it has let in, the cheapest first; among strangers, to the one
   * who has offered it for the longest, because a low price costs a stranger nothing. What others list under its name
   * is not shown, and their texts are nobody else's.
   */
  const definers = (group: readonly Offer[]): readonly Offer[] => {
    if (group.length < 2) return group;
    const letIn = byPrice(group.filter((offer) => !isStranger(offer)));
    if (letIn.length > 0) return letIn;
    const oldest = group.toSorted((a, b) => a.createdAt - b.createdAt || compare(a.id, b.id));
    return [oldest.find((offer) => listingOf(offer) !== null) ?? oldest[0]!];
  };

  function service(name: string): ServiceListing | null {
    sync();
    const group = groups.get(name);
    if (!group) return null;
    const first = definers(group);
    let view = views.get(name);
    if (!view || !isCurrent(view, first, group, listingOf))
      views.set(name, (view = mergeListings(first, group, listingOf)));
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
    definers,
    leftOutOf: (offer) => listingOf(offer)?.leftOut ?? [],
    schemaOf: (offer, tool) => listingOf(offer)?.tools.get(tool)?.inputSchema ?? null,
    services() {
      sync();
      return names;
    },
    since: (name) => Math.min(...(groups.get(name) ?? []).map(({ createdAt }) => createdAt)),
    service,
    find(query, { limit, services, access = null, ownerOf = () => null }) {
      sync();
      return findTools(query, { limit, access, ownerOf }, (services ?? names).values().map(service));
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

async function findTools(
  query: string,
  { limit, access, ownerOf }: Required<Pick<FindOptions, 'limit' | 'access' | 'ownerOf'>>,
  services: Iterable<ServiceListing | null>,
): Promise<readonly FoundTool[]> {
  const matches = await searchTools(query, searchedOf(services), {
    limit,
    ownerOf,
    order: (a, b) =>
      Number(ownerOf(a.value, a.name) !== null) - Number(ownerOf(b.value, b.name) !== null) ||
      compare(a.value.service, b.value.service) ||
      compare(a.name, b.name),
    ...(access === null ? {} : { admits: ({ service }, name) => access.allows('tool', service, name) }),
  });
  return matches.map(({ value, name }) => ({ ...firstWith(value, name), service: value.service }));
}

/** A tool that a service has, without `tools` of the whole service. */
function firstWith({ listings, offers, definers }: ServiceListing, name: string): ServiceTool {
  const at = listings.findIndex((listing, index) => index < definers && listing?.tools.has(name));
  return { tool: listings[at]!.tools.get(name)!, offer: offers[at]! };
}

function* searchedOf(services: Iterable<ServiceListing | null>): Generator<Searched<ServiceListing>> {
  for (const view of services) if (view) yield [view, knownOf(view).map(({ index }) => index)];
}

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

/** A tool of a service, with the offer whose server describes it. */
export interface ServiceTool {
  readonly tool: ToolEntry;
  readonly offer: Offer;
}

/** Everything that the definers of a service list. It stays the same object until something in it changes. */
export interface ServiceListing {
  readonly service: string;
  /** The definers first. */
  readonly offers: readonly Offer[];
  /** So many of the first offers, in this order, say what the service has. See ToolListings.definers. */
  readonly definers: number;
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

/** `offers`: all offers of one service, with the definers. */
export function mergeListings(
  definers: readonly Offer[],
  offers: readonly Offer[],
  listingOf: (offer: Offer) => ServerListing | null,
): ServiceListing {
  const ordered = [...definers, ...byPrice(offers.filter((offer) => !definers.includes(offer)))];
  return new Merged(definers.length, ordered, ordered.map(listingOf));
}

const knownOf = ({ listings, definers }: Pick<ServiceListing, 'listings' | 'definers'>) =>
  listings.slice(0, definers).filter((listing) => listing !== null);

class Merged implements ServiceListing {
  readonly service: string;
  readonly offers: readonly Offer[];
  readonly definers: number;
  readonly listings: readonly (ServerListing | null)[];
  readonly resources: readonly ListedItem[];
  readonly resourceTemplates: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  readonly #known: readonly ServerListing[];
  #tools: ReadonlyMap<string, ServiceTool> | null = null;

  constructor(definers: number, offers: readonly Offer[], listings: readonly (ServerListing | null)[]) {
    this.definers = definers;
    const known = knownOf({ listings, definers });
    this.service = offers[0]!.service;
    this.offers = offers;
    this.listings = listings;
    this.resources = merge(known, 'resources');
    this.resourceTemplates = merge(known, 'resourceTemplates');
    this.prompts = merge(known, 'prompts');
    this.#known = known;
  }

  get tools(): ReadonlyMap<string, ServiceTool> {
    return (this.#tools ??= mergeTools(this.offers, this.listings.slice(0, this.definers)));
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
  { offers, listings, definers }: ServiceListing,
  first: readonly Offer[],
  now: readonly Offer[],
  listingOf: (offer: Offer) => ServerListing | null,
): boolean {
  return (
    offers.length === now.length &&
    definers === first.length &&
    first.every((offer, i) => offer === offers[i]) &&
    now.every((offer) => offers.includes(offer)) &&
    offers.every((offer, i) => listingOf(offer) === listings[i])
  );
}

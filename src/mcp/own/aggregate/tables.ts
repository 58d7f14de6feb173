import type { Access, Caller } from '#accounts';
import { createPace } from '#wire';
import type { ListedItem } from '../../catalogue/fetch-lists.ts';
import type { ServiceListing, ServiceTool, ToolCatalogue } from '../../catalogue/tool-catalogue.ts';
import { exposedNames, prefixOf, distinct, type NameOf, type OnShared, slugOf, exposeUri } from './names.ts';

/**
 * Work in characters of text that is written: what fits into one turn of the event loop (some milliseconds), a name
 * that has to be made, a service that is looked at, and a tool that is merged with those of other providers.
 */
export const WORK = { turn: 128 * 1024, name: 100, service: 20, merged: 5 } as const;

/**
 * The tools, prompts and resources of a service by their names in the aggregate, sorted by these names. Each of them is
 * made at its first use.
 */
export interface ServiceTable {
  readonly service: string;
  /** The beginning of its URIs. */
  readonly slug: string;
  /** The beginning of the names of its tools and prompts. */
  readonly prefix: string;
  readonly listing: ServiceListing;
  readonly tools: ReadonlyMap<string, ServiceTool>;
  readonly prompts: ReadonlyMap<string, ListedItem>;
  readonly resources: ReadonlyMap<string, ListedItem>;
  readonly resourceTemplates: ReadonlyMap<string, ListedItem>;
  /** Exposed names of tools by their own names. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** How many names have to be made for the elements of a kind; 0 if they are there. */
  work(kind: TableKind): number;
}

export type TableKind = 'tools' | 'prompts' | 'resources' | 'resourceTemplates';

export interface Tables {
  tableOf(service: string): ServiceTable | null;
  /** The slug of a service. A service that no longer exists keeps its slug. */
  slug(service: string): string;
  service(slug: string): string | null;
  prefixed(prefix: string): string | null;
}

/**
 * The names of the aggregate over the whole catalogue. They are made on demand and cached until a list changes. If
 * services would have the same name, the oldest one gets it. `onShared` is called once for each such pair.
 */
export function createTables(
  catalogue: Pick<ToolCatalogue, 'services' | 'service' | 'since'>,
  onShared?: OnShared,
  names: { readonly slugOf: NameOf; readonly prefixOf: NameOf } = { slugOf, prefixOf },
): Tables {
  const tables = new WeakMap<ServiceListing, ServiceTable>();
  let catalogued: readonly string[] | null = null;
  let slugs: ReadonlyMap<string, string> = new Map();
  let prefixes: ReadonlyMap<string, string> = new Map();
  let services: ReadonlyMap<string, string> = new Map();
  let prefixed: ReadonlyMap<string, string> = new Map();

  const reported = new Set<string>();
  const tell: OnShared = (name, first, later) => {
    const key = `${name} ${first} ${later}`;
    if (reported.has(key)) return;
    reported.add(key);
    onShared?.(name, first, later);
  };

  const sync = () => {
    const now = catalogue.services();
    if (now === catalogued) return;
    catalogued = now;
    const age = new Map(now.map((service) => [service, catalogue.since(service)]));
    const oldestFirst = now.toSorted((a, b) => age.get(a)! - age.get(b)!);
    slugs = distinct(oldestFirst, names.slugOf, tell);
    prefixes = distinct(oldestFirst, names.prefixOf, tell);
    services = new Map([...slugs].map(([service, slug]) => [slug, service]));
    prefixed = new Map([...prefixes].map(([service, prefix]) => [prefix, service]));
  };

  return {
    tableOf(service) {
      sync();
      const listing = catalogue.service(service);
      const [slug, prefix] = [slugs.get(service), prefixes.get(service)];
      if (!listing || slug === undefined || prefix === undefined) return null;
      let table = tables.get(listing);
      if (table?.slug !== slug || table.prefix !== prefix)
        tables.set(listing, (table = new Table(listing, slug, prefix)));
      return table;
    },
    slug(service) {
      sync();
      return slugs.get(service) ?? names.slugOf(service, '');
    },
    service(slug) {
      sync();
      return services.get(slug) ?? null;
    },
    prefixed(prefix) {
      sync();
      return prefixed.get(prefix) ?? null;
    },
  };
}

class Table implements ServiceTable {
  readonly service: string;
  readonly slug: string;
  readonly prefix: string;
  readonly listing: ServiceListing;
  #toolNames: ServiceTable['toolNames'] | null = null;
  #tools: ServiceTable['tools'] | null = null;
  #prompts: ServiceTable['prompts'] | null = null;
  #resources: ServiceTable['resources'] | null = null;
  #resourceTemplates: ServiceTable['resourceTemplates'] | null = null;

  constructor(listing: ServiceListing, slug: string, prefix: string) {
    this.service = listing.service;
    this.slug = slug;
    this.prefix = prefix;
    this.listing = listing;
  }

  get toolNames() {
    return (this.#toolNames ??= exposedNames(this.prefix, [...this.listing.tools.keys()]));
  }

  get tools() {
    const { listing, toolNames } = this;
    return (this.#tools ??= ordered([...listing.tools].map(([name, tool]) => [toolNames.get(name)!, tool])));
  }

  get prompts() {
    return (this.#prompts ??= promptsOf(this.listing.prompts, this.prefix));
  }

  get resources() {
    return (this.#resources ??= byUri(this.listing.resources, this.slug));
  }

  get resourceTemplates() {
    return (this.#resourceTemplates ??= byUri(this.listing.resourceTemplates, this.slug));
  }

  work(kind: TableKind): number {
    if (kind === 'tools') return this.#toolNames ? 0 : this.listing.toolCount;
    const parts = { prompts: this.#prompts, resources: this.#resources, resourceTemplates: this.#resourceTemplates };
    return parts[kind] ? 0 : this.listing[kind].length;
  }
}

const byUri = (items: readonly ListedItem[], slug: string): ReadonlyMap<string, ListedItem> =>
  ordered(items.map((item) => [exposeUri(slug, item.key), item]));

function promptsOf(prompts: readonly ListedItem[], prefix: string): ReadonlyMap<string, ListedItem> {
  const names = exposedNames(
    prefix,
    prompts.map(({ key }) => key),
  );
  return ordered(prompts.map((prompt) => [names.get(prompt.key)!, prompt]));
}

function ordered<T>(entries: readonly (readonly [string, T])[]): ReadonlyMap<string, T> {
  return new Map(entries.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

/**
 * How many tools services have together that the caller may call; more than `enough` need not be counted. Many services
 * take several turns.
 */
export async function countTools(
  services: readonly string[],
  { access }: Pick<Scope, 'access'>,
  catalogue: Pick<ToolCatalogue, 'service'>,
  enough: number = Infinity,
): Promise<number> {
  const pace = createPace(WORK.turn);
  let tools = 0;
  for (const name of services) {
    if (tools > enough) break;
    const service = catalogue.service(name);
    await pace(WORK.service + (service?.mergeWork ?? 0) * WORK.merged);
    if (access === null || !service) {
      tools += service?.toolCount ?? 0;
      continue;
    }
    await pace(service.toolCount);
    for (const tool of service.tools.keys()) if (access.allows('tool', name, tool)) tools++;
  }
  return tools;
}

/** The services of which the caller may use something and that the address selects, in no particular order. */
export interface Scope {
  readonly services: readonly string[];
  includes(service: string): boolean;
  /** Whether the address selects a service, an agent or a model with this full name. */
  selects(name: string): boolean;
  /**
   * Whether the address names a service of tools, or the key by a pattern other than `*`. `tool`: null for all but
   * tools, undefined for anything that the service may have.
   */
  names(service: string, tool?: string | null): boolean;
  readonly access: Access | null;
}

/** Most names in `?services=`. Further names are ignored. */
const SELECTED_MAX = 256;

/**
 * `selection` is the value of `?services=`: names of services, agents (`a2a/…`) and models (`model/…`), separated by
 * commas. Null selects all. Services that the key may not use, or that are not connected now, are skipped without an
 * error, because a client's address must stay valid while providers come and go.
 */
export function scopeOf(all: readonly string[], caller: Pick<Caller, 'key'>, selection: string | null): Scope {
  const access = caller.key?.access ?? null;
  const selected = selection === null ? null : new Set(selection.split(',', SELECTED_MAX).map((name) => name.trim()));
  const selects = (name: string) => !selected || selected.has(name);
  const names: Scope['names'] = (service, tool) =>
    (selected?.has(service) ?? false) || (access?.names('tool', service, tool) ?? false);
  if (!selected && !access) return { services: all, includes: () => true, selects, names, access };
  const includes = (service: string) => selects(service) && (access === null || access.reaches('tool', service));
  return { services: all.filter(includes), includes, selects, names, access };
}

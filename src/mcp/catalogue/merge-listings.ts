import { byPrice, type Offer } from '#gateway';
import type { ListedItem, ServerListing, ToolEntry } from './listing.ts';

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
  /** By name. */
  readonly tools: ReadonlyMap<string, ServiceTool>;
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
  const listings = ordered.map(listingOf);
  const tools = new Map<string, ServiceTool>();
  for (const [index, listing] of listings.entries())
    for (const [name, tool] of listing?.tools ?? [])
      if (!tools.has(name)) tools.set(name, { tool, offer: ordered[index]! });
  return {
    service: ordered[0]!.service,
    offers: ordered,
    listings,
    tools,
    resources: merge(listings, 'resources'),
    resourceTemplates: merge(listings, 'resourceTemplates'),
    prompts: merge(listings, 'prompts'),
  };
}

function merge(
  listings: readonly (ServerListing | null)[],
  kind: 'resources' | 'resourceTemplates' | 'prompts',
): readonly ListedItem[] {
  const known = listings.filter((listing) => listing !== null);
  if (known.length <= 1) return known[0]?.[kind] ?? [];
  const items = new Map<string, ListedItem>();
  for (const listing of known) for (const item of listing[kind]) if (!items.has(item.key)) items.set(item.key, item);
  return [...items.values()];
}

/** Whether a merged listing is still up to date. */
export function isCurrent(
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

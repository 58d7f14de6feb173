import type { Primitive } from '#config';
import {
  type Offer,
  compare,
  listingsOf,
  primitivesOf,
  type Listing,
  viewPrice,
  type PriceView,
  offerStatus,
  viewHealth,
  type HealthSources,
  type HealthView,
  slugOf,
} from '#catalog';

interface ProviderView<L = ListingView> {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  /** Always null: providers don't state it, but clients of other gateways require the member. */
  readonly privacy_policy_url: null;
  readonly services: number;
  readonly primitives: readonly Primitive[];
  readonly status: ProviderStatus;
  readonly reached: 'direct' | 'tunnel';
  readonly listed_since: string;
  readonly uptime: number | null;
  readonly requests: number;
  readonly flags: Readonly<Record<string, number>>;
  readonly listings: readonly L[];
}

export type ProviderStatus = 'healthy' | 'untried' | 'degraded' | 'failing' | 'down' | 'away';

interface ListingView {
  readonly name: string;
  readonly display_name: string;
  readonly primitives: readonly Primitive[];
  readonly status: ProviderStatus;
}

interface ListingDetail extends ListingView {
  readonly description: string;
  readonly doors: readonly ListedOffer[];
}

interface ListedOffer extends HealthView {
  readonly primitive: Primitive;
  readonly pricing: PriceView;
}

/** All providers, sorted by name. */
export function* viewProviders(
  offers: readonly Offer[],
  healthSources: HealthSources,
): Generator<ProviderView, void, undefined> {
  const groups = [...Map.groupBy(offers, ({ provider }) => provider.id).values()];
  const byName = new Intl.Collator('en').compare;
  const [nameOf, idOf] = [(group: Offer[]) => group[0]!.provider.name, (group: Offer[]) => group[0]!.provider.id];
  groups.sort((a, b) => byName(nameOf(a), nameOf(b)) || compare(idOf(a), idOf(b)));
  for (const group of groups)
    yield viewProvider(group, healthSources, (listing) => viewListing(listing, healthSources));
}

/** One provider with its prices. `offers` are all its offers, at least one. */
export function viewProviderDetail(
  offers: readonly Offer[],
  healthSources: HealthSources,
): ProviderView<ListingDetail> {
  return viewProvider(offers, healthSources, (listing) => ({
    ...viewListing(listing, healthSources),
    description: listing.description,
    doors: listing.doors.map((offer) => viewListedOffer(offer, healthSources)),
  }));
}

function viewListedOffer(offer: Offer, healthSources: HealthSources): ListedOffer {
  return { primitive: offer.primitive, pricing: viewPrice(offer), ...viewHealth(offer, healthSources) };
}

export function statusOf(offers: readonly Offer[], healthSources: HealthSources): ProviderStatus {
  const counts = { healthy: 0, untried: 0, failing: 0, cooling_down: 0, away: 0 };
  for (const offer of offers) counts[offerStatus(offer, healthSources)]++;
  const { healthy, untried, failing, away } = counts;
  if (away === offers.length) return 'away';
  if (healthy + untried < offers.length && healthy + untried > 0) return 'degraded';
  if (healthy + untried > 0) return healthy > 0 ? 'healthy' : 'untried';
  return failing > 0 ? 'failing' : 'down';
}

function viewProvider<L>(
  offers: readonly Offer[],
  healthSources: HealthSources,
  view: (listing: Listing) => L,
): ProviderView<L> {
  const { provider, endpoint } = offers[0]!;
  const flags = new Map<string, number>();
  let requests = 0;
  let failures = 0;
  let listedSince = Infinity;
  for (const offer of offers) {
    const stats = healthSources.health.stats(offer);
    requests += stats.lastHour.requests;
    failures += stats.lastHour.failures;
    listedSince = Math.min(listedSince, offer.createdAt);
    for (const [flag, count] of Object.entries(stats.flags)) flags.set(flag, (flags.get(flag) ?? 0) + count);
  }
  const listings = listingsOf(offers);
  return {
    id: provider.id,
    name: provider.name,
    slug: slugOf(provider.name),
    privacy_policy_url: null,
    services: listings.length,
    primitives: primitivesOf(offers),
    status: statusOf(offers, healthSources),
    reached: endpoint.kind,
    listed_since: new Date(listedSince).toISOString(),
    uptime: requests === 0 ? null : 1 - failures / requests,
    requests,
    flags: Object.fromEntries(flags),
    listings: listings.map(view),
  };
}

function viewListing({ name, displayName, doors }: Listing, healthSources: HealthSources): ListingView {
  return { name, display_name: displayName, primitives: primitivesOf(doors), status: statusOf(doors, healthSources) };
}

import type { Primitive } from '#config';
import {
  type Offer,
  byService,
  descriptionOf,
  primitivesOf,
  viewPrice,
  type PriceView,
  viewHealth,
  type HealthSources,
  type HealthView,
} from '#gateway';
import { statusOf, type ProviderStatus } from './providers-view.ts';
import type { ServiceToolsView } from './tool-view.ts';

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

/** All services of one primitive, sorted by name. `all` are the offers of every primitive. */
export function viewServices(
  offers: readonly Offer[],
  all: readonly Offer[],
  healthSources: HealthSources,
): readonly ServiceView[] {
  const listings = Map.groupBy(all, listingKey);
  return byService(offers).map((group) =>
    viewService(group, (offer) => listings.get(listingKey(offer)) ?? [offer], healthSources),
  );
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

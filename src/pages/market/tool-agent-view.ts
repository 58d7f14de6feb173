import type { Primitive } from '#config';
import {
  type Offer,
  byService,
  descriptionOf,
  primitivesOf,
  viewPrice,
  type PriceView,
  viewStanding,
  type Standings,
  type StandingView,
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
  /** All primitives that one of its providers offers under this name: one listing, several doors. */
  readonly primitives: readonly Primitive[];
  readonly status: ProviderStatus;
  readonly providers: readonly ServiceProviderView[];
}

interface ServiceProviderView extends StandingView {
  readonly id: string;
  readonly name: string;
  readonly primitives: readonly Primitive[];
  readonly pricing: PriceView;
}

/** All services of one primitive, sorted by name. `all` are the offers of every primitive. */
export function viewServices(
  offers: readonly Offer[],
  all: readonly Offer[],
  standings: Standings,
): readonly ServiceView[] {
  const listings = Map.groupBy(all, listingKey);
  return byService(offers).map((group) =>
    viewService(group, (offer) => listings.get(listingKey(offer)) ?? [offer], standings),
  );
}

/**
 * One service as an entry. `offers` has at least one offer. `doorsOf` returns all offers that form one listing with an
 * offer.
 */
export function viewService(
  offers: readonly Offer[],
  doorsOf: (offer: Offer) => readonly Offer[],
  standings: Standings,
): ServiceView {
  const { service, displayName } = offers[0]!;
  return {
    id: service,
    name: service,
    display_name: displayName,
    description: descriptionOf(offers),
    primitives: primitivesOf(offers.flatMap(doorsOf)),
    status: statusOf(offers, standings),
    providers: offers.map((offer) => ({
      id: offer.provider.id,
      name: offer.provider.name,
      primitives: primitivesOf(doorsOf(offer)),
      pricing: viewPrice(offer),
      ...viewStanding(offer, standings),
    })),
  };
}

/** The space separates the two, because a provider's id contains no space. */
const listingKey = ({ provider, service }: Offer) => `${provider.id} ${service}`;

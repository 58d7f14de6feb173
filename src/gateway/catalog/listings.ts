import type { Primitive } from '#config';
import type { Offer } from '../call.ts';

/** One service of one provider: one name, and a door for each primitive that it is called through. */
export interface Listing {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** One for each primitive, in the order of their names. */
  readonly doors: readonly Offer[];
}

/**
 * The offers of one provider as listings, by name. Where doors are described differently, the first that says
 * something speaks for all.
 */
export function listingsOf(offers: readonly Offer[]): readonly Listing[] {
  return byService(offers).map((group) => {
    const doors = group.toSorted((a, b) => compare(a.primitive, b.primitive));
    return {
      name: doors[0]!.service,
      displayName: doors[0]!.displayName,
      description: descriptionOf(doors),
      doors,
    };
  });
}

/** By service name, in the order of the names. */
export function byService(offers: readonly Offer[]): readonly (readonly Offer[])[] {
  return [...Map.groupBy(offers, (offer) => offer.service)].sort(([a], [b]) => compare(a, b)).map(([, group]) => group);
}

/** Services as a door lists them: their names, and the first description that a provider gives. */
export const listedServices = (offers: readonly Offer[], limit: number) =>
  byService(offers)
    .slice(0, limit)
    .map((group) => ({
      name: group[0]!.service,
      displayName: group[0]!.displayName,
      description: descriptionOf(group),
    }));

/** The first description among offers of one service; empty where none says something. */
export const descriptionOf = (offers: readonly Offer[]): string =>
  offers.find(({ description }) => description !== '')?.description ?? '';

export function primitivesOf(offers: readonly Offer[]): readonly Primitive[] {
  return [...new Set(offers.map((offer) => offer.primitive))].sort();
}

/** By code units, which is the same everywhere. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

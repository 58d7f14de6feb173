import type { Primitive } from '#config';
import type { Offer } from './offers.ts';

/** One service of one provider: one name, with one offer for each primitive by which it can be called. */
export interface Listing {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  /** One offer for each primitive, sorted by the name of the primitive. */
  readonly doors: readonly Offer[];
}

/**
 * The offers of one provider as listings, sorted by name. If the offers of a service have different descriptions, the
 * first that is not empty is used.
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

/** Groups offers by service name, sorted by name. */
export function byService(offers: readonly Offer[]): readonly (readonly Offer[])[] {
  return [...Map.groupBy(offers, (offer) => offer.service)].sort(([a], [b]) => compare(a, b)).map(([, group]) => group);
}

/** Services for the list of a route: their names, and the first description that a provider gives. */
export const listedServices = (offers: readonly Offer[], limit: number) =>
  byService(offers)
    .slice(0, limit)
    .map((group) => ({
      name: group[0]!.service,
      displayName: group[0]!.displayName,
      description: descriptionOf(group),
    }));

/** The first description that is not empty among offers of one service; empty if there is no such description. */
export const descriptionOf = (offers: readonly Offer[]): string =>
  offers.find(({ description }) => description !== '')?.description ?? '';

export function primitivesOf(offers: readonly Offer[]): readonly Primitive[] {
  return [...new Set(offers.map((offer) => offer.primitive))].sort();
}

/** Compares by code units, so that the order does not depend on the locale. */
export const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export function slugOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '');
}

import type { Primitive } from '#config';
import { COMPARED_MAX } from './catalog.ts';
import { isOwn, type Offer } from './offers.ts';

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

/** Groups offers by service name, sorted by name. What the operator offers comes first. */
export function byService(offers: readonly Offer[]): readonly (readonly Offer[])[] {
  return ownFirst(grouped(offers).sort(byName));
}

const grouped = (offers: readonly Offer[]) => [...Map.groupBy(offers, ({ service }) => service).values()];

const byName = ([a]: readonly Offer[], [b]: readonly Offer[]) => compare(a!.service, b!.service);

function ownFirst(services: readonly (readonly Offer[])[]): readonly (readonly Offer[])[] {
  const { own = [], others = [] } = Object.groupBy(services, (group) => (group.some(isOwn) ? 'own' : 'others'));
  return [...own, ...others];
}

/** Services in a list that has no pages: all that the operator offers, or this many with those of others. */
const LISTED_MAX = 2_000;

/** Those of `byService` that a list which is sent in one piece has. */
export function inOneList(services: readonly (readonly Offer[])[]): readonly (readonly Offer[])[] {
  if (services.length <= LISTED_MAX) return services;
  return firstServices(services, Math.max(LISTED_MAX, services.filter((group) => group.some(isOwn)).length));
}

/**
 * At most `limit` services, in their order. What the operator offers comes before all else. The other providers get the
 * rest of the places in turn, so that none takes those of another by many names.
 */
export function firstServices(services: readonly (readonly Offer[])[], limit: number): readonly (readonly Offer[])[] {
  if (services.length <= limit) return services;
  const counts = new Map<string, number>();
  const turns = services.map((group) => {
    if (group.some(isOwn)) return 0;
    const providers = [...new Set(group.map(({ provider }) => provider.id))];
    const turn = 1 + Math.min(...providers.map((id) => counts.get(id) ?? 0));
    for (const id of providers) counts.set(id, (counts.get(id) ?? 0) + 1);
    return turn;
  });
  const sizes: number[] = [];
  for (const turn of turns) sizes[turn] = (sizes[turn] ?? 0) + 1;
  let last = 0;
  let room = limit;
  while (room > (sizes[last] ?? 0)) room -= sizes[last++] ?? 0;
  return services.filter((_, at) => turns[at]! < last || (turns[at] === last && room-- > 0));
}

/** Services for the list of a route: their names, and the first description that a provider gives. */
export const listedServices = (offers: readonly Offer[], limit: number) =>
  firstServices(byService(offers), limit).map((group) => ({
    name: group[0]!.service,
    displayName: group[0]!.displayName,
    description: descriptionOf(group),
  }));

/** Names of services to compare with an unknown one, those of the operator first. */
export function namesToCompare(offers: readonly Offer[]): readonly string[] {
  return ownFirst(firstServices(grouped(offers), COMPARED_MAX).toSorted(byName)).map(([offer]) => offer!.service);
}

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

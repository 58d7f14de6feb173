import type { Offer } from '../call.ts';
import type { Catalog } from './catalog.ts';

/** Finds listed offers by id; undefined for an offer that is not listed. Indexes the catalog once for each version. */
export function createOffersById(catalog: Pick<Catalog, 'offers' | 'version'>): (id: string) => Offer | undefined {
  let index = { version: -1, byId: new Map<string, Offer>() };
  return (id) => {
    const version = catalog.version();
    if (index.version !== version)
      index = { version, byId: new Map(catalog.offers().map((offer) => [offer.id, offer])) };
    return index.byId.get(id);
  };
}

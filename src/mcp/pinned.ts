/** The direct form of an offer's name, which is its id without the primitive. */
export const pinned = (offerId: string): string => offerId.slice(offerId.indexOf('/') + 1);

export { PRICES_DATE, PRICES_VERSION } from './list-prices.ts';
export { type LastLists, offerModels, type ProviderOffers, type WithheldModel } from './offer-models.ts';

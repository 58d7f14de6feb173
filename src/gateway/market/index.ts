export { createEarnings, type Earnings, type EarningsEntry, type FindEarnings } from './earnings.ts';
export { byService } from './listings.ts';
export { marketRoutes, type MarketDeps } from './market-routes.ts';
export { ownPages, type OwnPagesDeps } from './own-pages.ts';
export {
  viewImagePrice,
  viewModelPrice,
  viewPrice,
  viewVideoPrice,
  type ImagePrice,
  type ModelPrice,
  type PriceView,
  type VideoPrice,
} from './price-view.ts';
export { slugOf } from './providers-view.ts';
export { pricingSchema } from './market-schema.ts';
export { standingProperties, viewStanding, type OfferStatus, type Standings, type StandingView } from './standing.ts';
export * from './tool-listings.ts';
export { byPrice, viewToolCallPrice, type ToolCallPrice } from './tool-price.ts';
export { createFreshPage, sendPage, tagPage, type TaggedPage } from './tagged-page.ts';

export {
  type Catalog,
  type Resolved,
  createCatalog,
  createOffersById,
  nearestHint,
  nearestNames,
  otherEndpoint,
  resolveAny,
} from './catalog.ts';
export {
  type HealthSources,
  type HealthView,
  type OfferStatus,
  flagsSchema,
  healthProperties,
  offerStatus,
  raisedSchema,
  statusSchema,
  viewHealth,
} from './health-view.ts';
export { type Health, type OfferOutage, createHealth } from './health/health.ts';
export type { HealthState } from './health/offer-outages.ts';
export { type KeptFigures, type OfferFigures, type PromptSums, openKeptFigures } from './health/kept-figures.ts';
export { createSlidingCount } from './health/rolling-stats.ts';
export { LATELY_MS } from './lately-served.ts';
export {
  type Listing,
  byService,
  firstServices,
  inOneList,
  compare,
  descriptionOf,
  listedServices,
  listingsOf,
  namesToCompare,
  primitivesOf,
  slugOf,
} from './listings.ts';
export { pricingSchema } from './pricing-schema.ts';
export {
  type DirectEndpoint,
  type Endpoint,
  isOwn,
  stopsAt,
  stopsProperties,
  viewStops,
  type Offer,
  type Provider,
  type TunnelEndpoint,
  batchPriceOf,
  directForm,
  offersFromConfig,
  pinned,
  serviceTiersOf,
  toOffer,
  withFirstSeen,
  withOwnKey,
} from './offers.ts';
export {
  type ImagePrice,
  type ModelPrice,
  type PriceView,
  type ToolCallPrice,
  type VideoPrice,
  byPrice,
  viewImagePrice,
  viewModelPrice,
  viewPrice,
  viewRaise,
  viewToolCallPrice,
  viewVideoPrice,
} from './price-view.ts';
export {
  type DefinitionView,
  type ListedTool,
  type ToolDefinition,
  type LeftOut,
  type ToolListings,
  type ToolPin,
  type ToolPins,
  createToolPins,
  leftOutSchemaOf,
  viewDefinition,
  viewLeftOut,
} from './tool-definitions.ts';
export { TextSize, tokenizedBytes } from './tokenized-bytes.ts';

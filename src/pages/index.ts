export { accountRoutes } from './account/account-routes.ts';
export { adminProviderRoutes } from './account/admin-provider-routes.ts';
export { adminRoutes } from './account/admin-routes.ts';
export { administratorRoutes } from './account/administrator-routes.ts';
export { archiveRoutes } from './account/archive-routes.ts';
export { createKeyUsage } from './account/key-usage.ts';
export { limitsRoutes } from './account/limits-routes.ts';
export { providerKeysRoutes } from './account/provider-keys-routes.ts';
export { membersRoutes } from './account/members-routes.ts';
export { adminFiguresRoutes, auditRoutes, reloadRoutes } from './account/operator-routes.ts';
export { createPastReceipts, receiptOfCall, receiptOfRecord } from './account/receipts.ts';
export { ownFiguresRoutes } from './figures/own-routes.ts';
export { createFigurePages, publicFiguresRoutes } from './figures/public-routes.ts';
export { adminFundsRoutes } from './funds/admin-funds-routes.ts';
export { fundsRoutes } from './funds/funds-routes.ts';
export { createEarnings } from './market/earnings.ts';
export { marketRoutes } from './market/market-routes.ts';
export { pricingSchema } from './market/market-schema.ts';
export { ownPages } from './market/own-pages.ts';
export { slugOf } from './market/providers-view.ts';
export { quoteRoutes } from './market/quote-routes.ts';
export {
  A2A_ERROR,
  ANTHROPIC_ERROR,
  COHERE_ERROR,
  GEMINI_ERROR,
  JSON_RPC_ERROR,
  MEDIA_ERROR,
  MODELS_ERROR,
} from './reference/error-schemas.ts';
export { EXAMPLE_MODEL } from './reference/openapi.ts';
export { addKeySetRoute, referenceRoutes } from './reference/reference-routes.ts';
export { addWebPages } from './web/web-pages.ts';

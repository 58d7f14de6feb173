export { adminProviderRoutes } from './account/admin-provider-routes.ts';
export { adminRoutes } from './account/admin-routes.ts';
export { administratorRoutes } from './account/administrator-routes.ts';
export { type ArchiveRunView, type Archives, archiveRoutes, type AskedArchive } from './account/archive-routes.ts';
export { adminUsageRoutes } from './figures/admin-usage-routes.ts';
export { overviewRoutes } from './operator/overview-routes.ts';
export { receiptOfRecord } from './account/receipts.ts';
export { type FindKeyUsage, createKeyUsage } from './account/key-usage.ts';
export { type PaidOffer, reconciliationRoutes } from './account/reconciliation-routes.ts';

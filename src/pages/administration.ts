export { adminProviderRoutes } from './account/admin-provider-routes.ts';
export { adminRoutes } from './account/admin-routes.ts';
export { administratorRoutes } from './account/administrator-routes.ts';
export { createKeyUsage } from './account/key-usage.ts';

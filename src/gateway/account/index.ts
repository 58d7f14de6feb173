export { localAccount, needsNoMaking, parseAccountId } from './account-id.ts';
export { accountRoutes, type AccountDeps } from './account-routes.ts';
export { adminRoutes, type AdminDeps } from './admin-routes.ts';
export { auditRoutes, type AuditRoutesDeps } from './audit-routes.ts';
export { createConsumerStore, type Consumer, type ConsumerStore } from './consumer-store.ts';
export {
  createIdempotency,
  idempotencyError,
  ownIdempotencyKey,
  parseIdempotencyKey,
  type Beginning,
  type IdempotentUse,
  type Idempotency,
  type GivenReply,
  KEPT_BYTES_MAX,
  type StoredReply,
} from './idempotency.ts';
export { createKeyUsage, type FindKeyUsage } from './key-usage.ts';
export { receiptOfCall, receiptOfRecord } from './receipts.ts';

/* Consumers and keys: where they are kept and what a restricted key may not do, without what checks requests. */
export { type AdminKeyRecord, type AdminKeys, createAdminKeys } from './administrators/admin-keys.ts';
export { type AdminAct, type AdminLog, createAdminLog } from './administrators/admin-log.ts';
export { ADMIN_ROLES, type AdminRole, COMMAND, noteAdministrator } from './administrators/admin-roles.ts';
export { logActs } from './administrators/log-acts.ts';
export { createConsumerStore } from './consumer-store.ts';
export { isRestricted, requireFullRights } from './full-rights.ts';
export { createKeyStore, type KeyChanges, type KeyStore, type NewKeyFields } from './key-store.ts';
export { requireFreshSignature } from './siwx/fresh-signature.ts';
export type { Nonces } from './siwx/nonces.ts';

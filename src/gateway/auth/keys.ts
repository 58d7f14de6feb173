export {
  ADMIN_ROLES,
  type AdminKeyRecord,
  type AdminKeys,
  type AdminRole,
  administratorOf,
  COMMAND,
  createAdminKeys,
  noteAdministrator,
  requireRole,
} from './administrators/admin-keys.ts';
export { type AdminAct, type AdminLog, createAdminLog, logActs } from './administrators/admin-log.ts';
export { isRestricted, requireFreshSignature, requireFullRights } from './full-rights.ts';
export {
  type KeyChanges,
  type KeyRecord,
  type KeyStore,
  type LimitSetter,
  type NewKeyFields,
  createKeyStore,
  GRACE_S_MAX,
  KEYS_PER_ACCOUNT_MAX,
  UNFUNDED_KEYS_MAX,
} from './key-store.ts';
export type { Nonces } from './siwx/nonces.ts';

/* The stores of accounts and keys, without the authentication of requests. */
export { ACCOUNT_STATES, type AccountState, createConsumerStore } from './accounts/consumer-store.ts';
export {
  type AdminKeyRecord,
  type AdminKeys,
  createAdminKeys,
  ADMIN_ROLES,
  type AdminRole,
  COMMAND,
  noteAdministrator,
} from './administrators/admin-keys.ts';
export { type AdminAct, type AdminLog, createAdminLog, logActs } from './administrators/admin-log.ts';
export { isRestricted, requireFullRights, requireFreshSignature } from './full-rights.ts';
export {
  createKeyStore,
  type KeyChanges,
  type KeyRecord,
  type KeyStore,
  type LimitSetter,
  type NewKeyFields,
} from './key-store.ts';
export {
  type AccountLimits,
  type BudgetRule,
  budgetName,
  type LimitsSubject,
  NO_LIMITS,
  USUAL_PERCENTAGES,
} from './accounts/budgets.ts';
export { createLimitsStore, type LimitsStore } from './accounts/limits-store.ts';
export {
  MEMBER_ROLES,
  reaches,
  createMemberStore,
  type Member,
  MEMBERS_MAX,
  type MemberStore,
} from './accounts/member-store.ts';
export type { Nonces } from './siwx/nonces.ts';

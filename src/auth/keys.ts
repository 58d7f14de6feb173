/* The stores of accounts and keys, without the authentication of requests. */
export { ACCOUNT_STATES, type AccountState } from './account-states.ts';
export { type AdminKeyRecord, type AdminKeys, createAdminKeys } from './administrators/admin-keys.ts';
export { type AdminAct, type AdminLog, createAdminLog } from './administrators/admin-log.ts';
export { ADMIN_ROLES, type AdminRole, COMMAND, noteAdministrator } from './administrators/admin-roles.ts';
export { logActs } from './administrators/log-acts.ts';
export { createConsumerStore } from './consumer-store.ts';
export { isRestricted, requireFullRights } from './full-rights.ts';
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
} from './limits/account-limits.ts';
export { createLimitsStore, type LimitsStore } from './limits/limits-store.ts';
export { MEMBER_ROLES, reaches } from './members/member-roles.ts';
export { createMemberStore, type Member, MEMBERS_MAX, type MemberStore } from './members/member-store.ts';
export { requireFreshSignature } from './siwx/fresh-signature.ts';
export type { Nonces } from './siwx/nonces.ts';

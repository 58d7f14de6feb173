export {
  createAccountStates,
  refuseStopped,
  type Consumer,
  type ConsumerStore,
  createConsumerStore,
} from './accounts/consumer-store.ts';
export { type AdminGate, createAdminGate } from './administrators/admin-gate.ts';
export { createAdminKeys } from './administrators/admin-keys.ts';
export { createAdminLog, logActs } from './administrators/admin-log.ts';
export { requireAdmission } from './admission.ts';
export { type Attempts, createAttempts } from './attempts.ts';
export { createAuthenticator } from './authenticator.ts';
export { type CardKey, createCardKey, createIdentity, type Identity } from './identity.ts';
export { refuseRepeatedCredentials, createRunTokens, type RunTokens } from './credential.ts';
export {
  isRestricted,
  refuseRestricted,
  requireFullRights,
  restrictedKey,
  requireFreshSignature,
} from './full-rights.ts';
export { createKeyStore, type KeyChanges, type KeyRecord, type KeyStore, type LimitSetter } from './key-store.ts';
export {
  type AccountLimits,
  type BudgetRule,
  budgetName,
  budgetsFromText,
  type LimitsSubject,
  NO_LIMITS,
  ownerOfLimits,
  USUAL_PERCENTAGES,
} from './accounts/budgets.ts';
export { type CarryingLimit, createCarriedSums, carryingBudget, carryingKey } from './accounts/carried-sums.ts';
export { createLimitsStore, type LimitsStore } from './accounts/limits-store.ts';
export {
  createMemberStore,
  type Member,
  MEMBERS_MAX,
  type MemberStore,
  ORGANISATIONS_MAX,
} from './accounts/member-store.ts';
export { nonceRoutes, createNonces, type Nonces } from './siwx/nonces.ts';
export { createProtectedResource, type ProtectedResource } from './oauth/protected-resource.ts';
export { providerIdOf } from './accounts/account-id.ts';
export { createAdminSessions, adminSessionRoutes } from './sessions/admin-sessions.ts';
export { createSessionCookies } from './sessions/session-cookie.ts';
export { sessionRoutes } from './sessions/session-routes.ts';
export { createWebSessions } from './sessions/web-sessions.ts';
export { createSignIn, type SignIn } from './siwx/sign-in.ts';
export { verifyWalletSignature } from './siwx/wallet-signature.ts';

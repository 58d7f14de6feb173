export { createAccountStates, refuseStopped } from './account-states.ts';
export { type AdminGate, createAdminGate } from './admin-gate.ts';
export { createAdminKeys } from './administrators/admin-keys.ts';
export { createAdminLog } from './administrators/admin-log.ts';
export { logActs } from './administrators/log-acts.ts';
export { requireAdmission } from './admission.ts';
export { type Attempts, createAttempts } from './attempts.ts';
export { createAuthenticator } from './authenticator.ts';
export { type CardKey, createCardKey } from './card-key.ts';
export { type Consumer, type ConsumerStore, createConsumerStore } from './consumer-store.ts';
export { refuseRepeatedCredentials } from './credential.ts';
export { isRestricted, refuseRestricted, requireFullRights, restrictedKey } from './full-rights.ts';
export { createIdentity, type Identity } from './identity.ts';
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
} from './limits/account-limits.ts';
export { type CarryingLimit, createCarriedSums } from './limits/carried-sums.ts';
export { carryingBudget, carryingKey } from './limits/carrying-limits.ts';
export { createLimitsStore, type LimitsStore } from './limits/limits-store.ts';
export {
  createMemberStore,
  type Member,
  MEMBERS_MAX,
  type MemberStore,
  ORGANISATIONS_MAX,
} from './members/member-store.ts';
export { nonceRoutes } from './nonce-routes.ts';
export { createProtectedResource, type ProtectedResource } from './oauth/create-protected-resource.ts';
export { providerIdOf } from './provider-id.ts';
export { createRunTokens, type RunTokens } from './run-tokens.ts';
export { createAdminSessions } from './sessions/admin-sessions.ts';
export { adminSessionRoutes } from './sessions/admin-session-routes.ts';
export { createSessionCookies } from './sessions/session-cookie.ts';
export { sessionRoutes } from './sessions/session-routes.ts';
export { createWebSessions } from './sessions/web-sessions.ts';
export { requireFreshSignature } from './siwx/fresh-signature.ts';
export { createNonces, type Nonces } from './siwx/nonces.ts';
export { createSignIn, type SignIn } from './siwx/sign-in.ts';
export { verifyWalletSignature } from './siwx/wallet-signature.ts';

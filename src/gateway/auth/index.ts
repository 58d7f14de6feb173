export { type AdminGate, createAdminGate, gateWithKey } from './administrators/admin-gate.ts';
export { createAdminKeys } from './administrators/admin-keys.ts';
export { createAdminLog, logActs } from './administrators/admin-log.ts';
export {
  type AdmissionOf,
  type Asker,
  type AskerOf,
  type CallerOf,
  createAskerOf,
  requireAdmission,
} from './admission.ts';
export { createKey, hashKey, parseKey } from './api-key.ts';
export { type Attempts, createAttempts } from './attempts.ts';
export { type Authenticator, createAuthenticator } from './authenticator.ts';
export { type ClientSecrets, createClientSecrets, letSecretCount, type SecretGrant } from './client-secrets.ts';
export { type RunTokens, createRunTokens, refuseRepeatedCredentials } from './credential.ts';
export {
  isRestricted,
  letOldTextCount,
  refuseRestricted,
  requireFreshSignature,
  requireFullRights,
  restrictedKey,
} from './full-rights.ts';
export { type CardKey, type Identity, createCardKey, createIdentity, signingJwk } from './identity.ts';
export { type KeyStore, type LimitSetter, createKeyStore } from './key-store.ts';
export {
  type ChallengeFor,
  type ProtectedResource,
  createProtectedResource,
  OWN_SCOPE,
} from './oauth/protected-resource.ts';
export type { OwnToken } from './oauth/own-tokens.ts';
export { agentAt, type Resources } from './oauth/resources.ts';
export { DPOP_ALGORITHMS } from './oauth/dpop-proof.ts';
export { adminSessionRoutes, createAdminSessions } from './sessions/admin-sessions.ts';
export { type SessionCookies, createSessionCookies } from './sessions/session-cookie.ts';
export { sessionRoutes } from './session-routes.ts';
export { type WebSessions, createWebSessions } from './sessions/web-sessions.ts';
export { type Nonces, createNonces, nonceRoutes } from './siwx/nonces.ts';
export { type SignIn, createSignIn } from './siwx/sign-in.ts';
export { verifyWalletSignature } from './siwx/wallet-signature.ts';
export { createPeople, type People } from './people/people.ts';
export { createPeopleProvider } from './people/provider.ts';
export { peopleRoutes } from './people/people-routes.ts';
export { createPeopleStore } from './people/people-store.ts';

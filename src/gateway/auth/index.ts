export { createKey, hashKey, parseKey, type KeyKind, type NewKey } from './api-key.ts';
export { createAdminGuard } from './admin-key.ts';
export { createAuthenticator, type Authenticator, type AuthenticatorOptions } from './authenticator.ts';
export { refuseRepeatedCredentials } from './credential.ts';
export { createKeyStore, type KeyChanges, type KeyRecord, type KeyStore, type NewKeyFields } from './key-store.ts';
export { LIMIT_RESETS, budgetAt, type LimitReset } from './spend-period.ts';

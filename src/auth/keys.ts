/* Consumers and keys: where they are kept and what a restricted key may not do, without what checks requests. */
export { createConsumerStore } from './consumer-store.ts';
export { isRestricted, requireFullRights } from './full-rights.ts';
export { createKeyStore, type KeyChanges, type KeyStore, type NewKeyFields } from './key-store.ts';
export { requireFreshSignature } from './siwx/fresh-signature.ts';
export type { Nonces } from './siwx/nonces.ts';

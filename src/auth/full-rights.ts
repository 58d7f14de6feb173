import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import type { KeyStore } from './key-store.ts';

/**
 * For what reaches beyond one call, such as keys and the way of money: a wallet, or a key without limits. Neither a
 * key that is itself limited, or its limits would be none, nor an access token, as nothing proves that it was meant
 * for this very request. `what` is told of: `create keys`. Rejects with GatewayError `permission_denied`.
 */
export async function requireFullRights(
  keys: Pick<KeyStore, 'find'>,
  { key, wallet }: Pick<Caller, 'key' | 'wallet'>,
  { what, instead }: { readonly what: string; readonly instead: string },
): Promise<void> {
  if (key === null && wallet === null)
    throw new GatewayError('permission_denied', `An access token cannot ${what}: ${instead}`);
  await refuseRestricted(keys, key, what);
}

/**
 * For what is the account's and not the key's, such as its other keys and its earnings: whoever holds a key that is
 * limited sees nothing of them. Rejects with GatewayError `permission_denied`. `what` is told of: `see earnings`.
 */
export async function refuseRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key'], what: string): Promise<void> {
  if (await isRestricted(keys, key))
    throw new GatewayError(
      'permission_denied',
      `A key with a spending limit, an expiry or a list of services cannot ${what}: use one without`,
    );
}

/**
 * Whether a key has a spending limit, an expiry or a list of services. Read afresh, as the cache does not know of
 * all of these.
 */
export async function isRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key']): Promise<boolean> {
  if (key === null) return false;
  const record = await keys.find(key.hash);
  return !record || record.limit !== null || record.expiresAt !== null || record.allowedServices !== null;
}

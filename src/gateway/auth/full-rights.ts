import type { Caller } from '../call.ts';
import { GatewayError } from '../errors.ts';
import type { KeyStore } from './key-store.ts';

/**
 * For what reaches beyond one call, such as keys and the way of money: a wallet, or a key without limits. Neither a key that is itself limited, or its limits would be
 * none, nor an access token, as nothing proves that it was meant for this very request. `what` is told of: `create keys`. Rejects with GatewayError `permission_denied`.
 */
export async function requireFullRights(
  keys: Pick<KeyStore, 'find'>,
  { key, wallet }: Pick<Caller, 'key' | 'wallet'>,
  { what, instead }: { readonly what: string; readonly instead: string },
): Promise<void> {
  if (key === null && wallet === null) throw new GatewayError('permission_denied', `An access token cannot ${what}: ${instead}`);
  if (key === null) return;
  // Read afresh, as the cache does not know of all of these.
  const record = await keys.find(key.hash);
  if (record && record.limit === null && record.expiresAt === null && record.allowedServices === null) return;
  throw new GatewayError('permission_denied', `A key with a spending limit, an expiry or a list of services cannot ${what}: use one without`);
}

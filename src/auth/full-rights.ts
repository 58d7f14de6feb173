import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { invalidKey } from './key-callers.ts';
import { hasRestriction, type KeyStore } from './key-store.ts';

/**
 * For acts that reach beyond one call, such as making keys and moving money. A wallet or a key without limits may
 * do them. A limited key may not, or its limits would mean nothing. An access token may not, as nothing proves that
 * it was meant for this very request. `what` completes the error: `create keys`. Rejects with GatewayError
 * `permission_denied`.
 */
export async function requireFullRights(
  keys: Pick<KeyStore, 'find'>,
  { key, wallet, session, member }: Pick<Caller, 'key' | 'wallet' | 'session' | 'member'>,
  { what, instead }: { readonly what: string; readonly instead: string },
): Promise<void> {
  if (key === null && wallet === null && session === undefined && member?.byKey !== true)
    throw new GatewayError('permission_denied', `An access token cannot ${what}: ${instead}`);
  await refuseRestricted(keys, key, what);
}

/**
 * For pages of the whole account, such as its other keys and its earnings: the holder of a limited key does not see
 * them. Rejects with GatewayError `permission_denied`, or `unauthorized` for a key that was deleted a moment ago.
 * `what` completes the error: `see earnings`.
 */
export async function refuseRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key'], what: string): Promise<void> {
  if (key === null) return;
  const record = await keys.find(key.hash);
  if (record === null) throw invalidKey();
  if (hasRestriction(record)) throw restrictedKey(what);
}

/** The error of a restricted key. `what` completes it: `see earnings`. */
export const restrictedKey = (what: string): GatewayError =>
  new GatewayError(
    'permission_denied',
    `A key with a spending limit, a rate, an expiry or a list of services cannot ${what}, nor can the key of a member: use one without`,
  );

/** CallerKey.restricted as the store has it: another gateway may have changed the key a moment ago. */
export async function isRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key']): Promise<boolean> {
  if (key === null) return false;
  const record = await keys.find(key.hash);
  return record === null || hasRestriction(record);
}

import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { isRestricted, type KeyStore } from '#auth';

/**
 * Returns the hash of the key whose calls the caller may see: the requested key, or for a restricted key only the key
 * itself. undefined means all calls of the account. Throws GatewayError `permission_denied` if a restricted key asks
 * for another key.
 */
export async function ownKey(
  keys: Pick<KeyStore, 'find'>,
  { key }: Caller,
  asked: string | undefined,
  param: string,
): Promise<string | undefined> {
  if (!(await isRestricted(keys, key))) return asked;
  if (asked !== undefined && asked !== key!.hash)
    throw new GatewayError(
      'permission_denied',
      'A key with a spending limit, a rate, an expiry or a list of services sees only its own calls',
      { param },
    );
  return key!.hash;
}

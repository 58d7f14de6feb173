import { GatewayError } from '#wire';
import type { Caller } from '#gateway';
import { isRestricted, type KeyStore } from '#auth';

/**
 * The hash of the key whose calls are shown: the one that is asked for, and to a limited key its own alone. Undefined
 * for all of the account. Throws GatewayError `permission_denied` where a limited key asks for another one.
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
      'A key with a spending limit, a rate, an expiry or a list of services sees its own calls alone',
      { param },
    );
  return key!.hash;
}

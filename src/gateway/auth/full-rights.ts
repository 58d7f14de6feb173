import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import type { Caller } from '#accounts';
import { invalidKey } from './key-callers.ts';
import { hasRestriction, type KeyStore } from './key-store.ts';
import type { Nonces } from './siwx/nonces.ts';
import { signInError } from './siwx/message.ts';

const OLD_TEXT = Symbol('old text');
type OldTextHeaders = IncomingHttpHeaders & { [OLD_TEXT]?: true };

/**
 * Lets the text of a key that was replaced count in this request, although it makes no call. Without it only the
 * present text may do what is no call: write, and sign in. See letAct.
 */
export function letOldTextCount(headers: IncomingHttpHeaders): void {
  (headers as OldTextHeaders)[OLD_TEXT] = true;
}

export const oldTextCounts = (headers: IncomingHttpHeaders): boolean => (headers as OldTextHeaders)[OLD_TEXT] === true;

/*
 * Guards of what a caller does besides calls: a key with limits may not, an access token may not, and for the most
 * sensitive requests the wallet or the key itself must be there.
 */

/**
 * Guards actions beyond a single call, such as creating keys and moving money. A wallet or a key without limits may do
 * them. A limited key may not, because it could escape its limits. An access token may not, because nothing proves that
 * it was meant for this request. `what` completes the error text: `create keys`. Rejects with GatewayError
 * `permission_denied`, or `unauthorized` for a key that was just deleted.
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
 * Guards data of the whole account, such as its other keys and its earnings, which a limited key may not see. Rejects
 * with GatewayError `permission_denied`, or `unauthorized` for a key that was just deleted. `what` completes the error
 * text: `see earnings`.
 */
export async function refuseRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key'], what: string): Promise<void> {
  if (key === null) return;
  const record = await keys.find(key.hash);
  if (record === null) throw invalidKey();
  if (hasRestriction(record)) throw restrictedKey(what);
}

/** The error for a restricted key. `what` completes its text: `see earnings`. */
export const restrictedKey = (what: string): GatewayError =>
  new GatewayError(
    'permission_denied',
    `A key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above cannot ${what}, nor can the key of a member: use one without`,
  );

/**
 * Whether a key is restricted, read from the store: CallerKey.restricted is cached, and another gateway may have just
 * changed the key. A deleted key counts as restricted.
 */
export async function isRestricted(keys: Pick<KeyStore, 'find'>, key: Caller['key']): Promise<boolean> {
  if (key === null) return false;
  const record = await keys.find(key.hash);
  return record === null || hasRestriction(record);
}

const HOW_TO_SIGN = 'get one from GET /api/v1/auth/nonce, sign a message with it, and send that once';

/**
 * Guards sensitive requests. A wallet must have signed in for this request, with an unused nonce of this gateway. The
 * nonce is used up. Callers with an API key pass. The session cookie of a wallet or key does not pass, because a
 * thief of the cookie has neither the wallet nor the key. The session of a person passes for 15 minutes. Rejects with
 * GatewayError `unauthorized`.
 */
export async function requireFreshSignature({ wallet, session }: Caller, nonces: Pick<Nonces, 'use'>): Promise<void> {
  if (session?.method === 'api_key')
    throw signInError('A session is not enough for this: send the API key itself, as "Authorization: Bearer svc-sk-…"');
  if (session?.method === 'person' && session.fresh !== true)
    throw signInError("This needs a sign-in of the last 15 minutes: sign in with your company's provider again");
  if (wallet === null) return;
  if (wallet.nonce === null) throw signInError(`This needs a sign-in with a nonce of this gateway: ${HOW_TO_SIGN}`);
  if (!(await nonces.use(wallet.nonce)))
    throw signInError(
      `The nonce of this sign-in was used before, is older than 10 minutes or is not of this gateway: ${HOW_TO_SIGN}`,
    );
}

import { GatewayError } from '#wire';
import type { Caller } from '#gateway';

/**
 * Whom a payment is credited to. For an organisation that a member acts for, the member's wallet is like any other: the
 * payment names the account, where its chain has payments name one. Throws GatewayError `permission_denied` for a run
 * token.
 */
export function topupCaller(caller: Caller): Caller {
  if (caller.run)
    throw new GatewayError(
      'permission_denied',
      'A run token is for calls alone: pay in with the credential of the account',
    );
  return caller.member === undefined ? caller : { ...caller, wallet: null };
}

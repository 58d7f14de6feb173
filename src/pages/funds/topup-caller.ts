import { GatewayError } from '#wire';
import type { Caller } from '#gateway';

/**
 * Returns the caller whose account a payment is credited to. If a member acts for an organisation, the member's own
 * wallet gets no special treatment: on chains whose payments name an account, the payment must name the organisation.
 * Throws GatewayError `permission_denied` for a run token.
 */
export function topupCaller(caller: Caller): Caller {
  if (caller.run)
    throw new GatewayError(
      'permission_denied',
      'A run token works only for calls. Pay in with the credential of the account',
    );
  return caller.member === undefined ? caller : { ...caller, wallet: null };
}

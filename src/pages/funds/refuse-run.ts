import { GatewayError } from '#wire';
import type { Caller } from '#gateway';

/** Throws GatewayError `permission_denied` for an agent's token. */
export function refuseRun({ run }: Pick<Caller, 'run'>): void {
  if (run)
    throw new GatewayError(
      'permission_denied',
      'A run token is for calls alone: pay in with the credential of the account',
    );
}

import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';
import { ACCOUNT_HEADER, isDevelopment, nobodyActs, roleToAct, type Caller } from '#gateway';
import { parseAccountId } from '../accounts/account-id.ts';
import { refuseRestricted } from '../full-rights.ts';
import type { KeyStore } from '../key-store.ts';
import { reaches } from './member-roles.ts';
import type { MemberStore } from './member-store.ts';

interface ActDeps {
  readonly keys: Pick<KeyStore, 'findWithLimits'>;
  readonly members: Pick<MemberStore, 'find'>;
}

/**
 * The caller as a member that acts for the account in its header. The membership is looked up for each request, so that
 * a removed member loses access at once. Rejects with GatewayError `not_found` if the caller is not a member of the
 * account. Rejects with `permission_denied` if the role is too low, if the credential may not act for others, or if the
 * route does not allow it.
 */
export async function actFor(headers: IncomingHttpHeaders, caller: Caller, deps: ActDeps): Promise<Caller> {
  const needed = roleToAct(headers);
  if (needed === undefined) throw nobodyActs();
  if (caller.run || caller.anonymous || caller.paying)
    throw new GatewayError('permission_denied', 'Only a wallet, a session or an API key acts for another account');
  await refuseRestricted({ find: deps.keys.findWithLimits }, caller.key, 'act for another account');
  const asked = String(headers[ACCOUNT_HEADER]);
  const member = await deps.members.find(accountOf(asked), caller.account);
  if (member === null) throw new GatewayError('not_found', 'Account not found', { param: ACCOUNT_HEADER });
  const { account, role } = member;
  if (!reaches(role, needed))
    throw new GatewayError('permission_denied', `This needs the role ${needed} of the account: yours is ${role}`);
  const { wallet, session } = caller;
  const acting = {
    account: caller.account,
    role,
    byKey: caller.key !== null && session === undefined,
    development: isDevelopment(caller),
  };
  return { account, key: null, wallet, ...(session ? { session } : {}), member: acting };
}

function accountOf(text: string): string {
  try {
    return parseAccountId(text) ?? text;
  } catch {
    return text;
  }
}

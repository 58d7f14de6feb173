import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';

export type MemberRole = 'viewer' | 'member' | 'admin' | 'owner';

/** The header that names the account that a member acts for. */
export const ACCOUNT_HEADER = 'x-tollgate-account';

/** The member that a caller is who acts for another account. */
export interface CallerMember {
  /** The account that the member signed in as. */
  readonly account: string;
  readonly role: MemberRole;
  /** It came with an API key of its own account, and not with a wallet, a session or an access token. */
  readonly byKey: boolean;
  /** It signed in as an account of play money. */
  readonly development: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The role with which a member may do this for an account. Without it nobody acts for another account here. */
    actsAs?: MemberRole;
  }
}

const NEEDED = Symbol('role');
type Marked = IncomingHttpHeaders & { [NEEDED]?: MemberRole };

/**
 * Lets members act for an account by this request, from a role on. The mark is on the headers, as these are all that
 * authentication is given, and no client can send a symbol.
 */
export function letAct(headers: IncomingHttpHeaders, needed: MemberRole): void {
  (headers as Marked)[NEEDED] = needed;
}

/** The error of a request that names an account to act for, where nobody does. */
export const nobodyActs = (): GatewayError =>
  new GatewayError(
    'permission_denied',
    `Nobody acts for another account here: leave out ${ACCOUNT_HEADER}, and call with a key of that account`,
  );

/** The role from which members act by this request; undefined where nobody does. */
export const roleToAct = (headers: IncomingHttpHeaders): MemberRole | undefined => (headers as Marked)[NEEDED];

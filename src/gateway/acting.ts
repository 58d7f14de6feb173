import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';
import type { Caller } from './call.ts';

export type MemberRole = 'viewer' | 'member' | 'admin' | 'owner';

/** The header with the account that a member acts for. */
export const ACCOUNT_HEADER = 'x-tollgate-account';

/** A caller that acts for another account, as one of its members. */
export interface CallerMember {
  /** The account that the member signed in as. */
  readonly account: string;
  readonly role: MemberRole;
  /** Its credential is an API key of its own account, not a wallet, a session or an access token. */
  readonly byKey: boolean;
  /** It signed in to an account with play money. */
  readonly development: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The lowest role with which a member may use this route for an account. Absent: nobody acts for another account
     * here.
     */
    actsAs?: MemberRole;
  }
}

const NEEDED = Symbol('role');
type Marked = IncomingHttpHeaders & { [NEEDED]?: MemberRole };

/**
 * Lets members with at least the role `needed` act for an account in this request. The mark is a symbol on the headers,
 * because authentication gets only the headers, and no client can send a symbol.
 */
export function letAct(headers: IncomingHttpHeaders, needed: MemberRole): void {
  (headers as Marked)[NEEDED] = needed;
}

/** The error for a request that names an account to act for, where acting is not possible. */
export const nobodyActs = (): GatewayError =>
  new GatewayError(
    'permission_denied',
    `This endpoint does not accept ${ACCOUNT_HEADER}: call it with a key of that account instead`,
  );

/** The lowest role with which members may act in this request; undefined if nobody may. */
export const roleToAct = (headers: IncomingHttpHeaders): MemberRole | undefined => (headers as Marked)[NEEDED];

/**
 * The part of its account that owns what a caller begins: the running call of a run token, or `key <hash>` of a
 * restricted key. null: the whole account owns it. A caller with a part sees only what this part owns, and one without
 * sees everything of the account.
 */
export const ownPartOf = ({ key, run }: Pick<Caller, 'key' | 'run'>): string | null =>
  run?.parent ?? (key?.restricted ? `key ${key.hash}` : null);

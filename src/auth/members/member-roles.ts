import type { MemberRole } from '#gateway';

/** The roles of members, from the one that may least. */
export const MEMBER_ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly MemberRole[];

/** Whether a role may what another may. */
export const reaches = (role: MemberRole, needed: MemberRole): boolean =>
  MEMBER_ROLES.indexOf(role) >= MEMBER_ROLES.indexOf(needed);

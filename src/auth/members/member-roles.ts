import type { MemberRole } from '#gateway';

/** The roles of members, from the fewest rights to the most. */
export const MEMBER_ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly MemberRole[];

/** Whether a role has all rights of another. */
export const reaches = (role: MemberRole, needed: MemberRole): boolean =>
  MEMBER_ROLES.indexOf(role) >= MEMBER_ROLES.indexOf(needed);

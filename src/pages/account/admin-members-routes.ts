import type { FastifyInstance, FastifySchema } from 'fastify';
import type { MemberRole } from '#gateway';
import { dataOf, listOf, objectOf } from '../answer-schemas.ts';
import { accountParams, findAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import {
  addMember,
  newMemberOf,
  findMember,
  memberParams,
  memberSchema,
  nameProperty,
  newMemberSchema,
  refuseChange,
  roleProperty,
  viewMembers,
  type MembersDeps,
  type NewMemberBody,
} from './members-view.ts';

interface AccountParams {
  readonly id: string;
}
interface MemberParams extends AccountParams {
  readonly member: string;
}

const MEMBERS = '/accounts/:id/members';
const MEMBER = '/accounts/:id/members/:member';
/**
 * Members need the role configure. An owner can withdraw money, so with the role credit one must not be able to make an
 * owner.
 */
const CONFIGURE = { adminRole: 'configure' } as const;
const ofAMember = memberParams(accountParams.properties);

/**
 * Adds the routes for the members of every account to `app`, which only the operator can access. `common` is part of
 * every route's schema.
 */
export function addAdminMembersRoutes(
  app: FastifyInstance,
  deps: AdminAccountsDeps & MembersDeps,
  common: FastifySchema,
): void {
  const listed = {
    ...common,
    summary: "List an account's members",
    description: 'Who signs in as a person of the account, with the role and the limits of each.',
    params: accountParams,
    response: { 200: listOf(memberSchema) },
  };
  app.get<{ Params: AccountParams }>(MEMBERS, { schema: listed }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return { data: await viewMembers(account, await deps.members.list(account), deps) };
  });
  const added = {
    ...common,
    summary: 'Add a member to an account',
    description: 'An account with members is an organisation.',
    params: accountParams,
    body: newMemberSchema,
    response: { 201: dataOf(memberSchema) },
  };
  app.post<{ Params: AccountParams; Body: NewMemberBody }>(
    MEMBERS,
    { schema: added, config: CONFIGURE },
    async ({ params, body }, reply) => {
      const { account } = await findAccount(params.id, deps);
      const member = await newMemberOf(account, body, deps);
      const [data] = await viewMembers(account, [await addMember(account, member, body, deps)], deps);
      return reply.code(201).send({ data });
    },
  );
  const changed = {
    ...common,
    summary: 'Change a member of an account',
    description: 'Sets what the request names. The rest stays.',
    params: ofAMember,
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ role: 'owner' }],
      properties: { role: roleProperty, name: nameProperty },
    },
    response: { 200: dataOf(memberSchema) },
  };
  app.patch<{ Params: MemberParams; Body: { readonly role?: MemberRole; readonly name?: string } }>(
    MEMBER,
    { schema: changed, config: CONFIGURE },
    async ({ params, body }) => {
      const { account } = await findAccount(params.id, deps);
      const { member } = await findMember(account, params.member, deps);
      const { role, name } = body;
      const found = await deps.members.change(account, member, { role, name: name?.trim() || undefined });
      if (found === null) return refuseChange(account, member, deps);
      const [data] = await viewMembers(account, [found], deps);
      return { data };
    },
  );
  const removed = {
    ...common,
    summary: 'Remove a member of an account',
    description: 'The member loses access at once, and their keys are deleted.',
    params: ofAMember,
    response: { 200: objectOf({ removed: { type: 'boolean' } }) },
  };
  app.delete<{ Params: MemberParams }>(MEMBER, { schema: removed, config: CONFIGURE }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    const { member } = await findMember(account, params.member, deps);
    if (!(await deps.members.remove(account, member))) return refuseChange(account, member, deps);
    return { removed: true };
  });
}

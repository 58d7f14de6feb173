import type { FastifyInstance, FastifyRequest } from 'fastify';
import { GatewayError } from '#errors';
import { toUsdNumber } from '#billing/amounts';
import { DOCUMENTED } from '#http';
import {
  type Caller,
  type LimitsStore,
  type MemberRole,
  type AccountMember,
  MEMBER_ROLES,
  MEMBERS_MAX,
  NO_LIMITS,
  type MemberStore,
  reaches,
} from '#accounts';
import { type KeyStore, requireRole } from '#auth/keys';
import { ACCOUNT_ID_PATTERN, parseAccountId, toCaip10 } from '#accounts/names';
import { ADMINISTRATION, objectOf, titled, dataOf, listOf } from '../route-schemas.ts';
import type { FindKeyUsage } from './key-usage.ts';
import { readName } from './label.ts';
import { callRulesView, viewCallRules } from './body-fields.ts';
import { limitsSchema, viewLimits, type LimitsDeps } from './limits.ts';
import { accountParams, findAccount, type AdminAccountsDeps, type AccountParams } from './admin-accounts.ts';

/* The members of an account, for the routes of the operator and of the owner. */

export interface MembersDeps extends LimitsDeps {
  readonly members: MemberStore;
  readonly keys: Pick<KeyStore, 'list'>;
  readonly usage: FindKeyUsage;
  /** CAIP-2 ids of the gateway's own chains. */
  readonly networks: readonly string[];
}

export interface NewMemberBody {
  readonly account: string;
  readonly role: MemberRole;
  readonly name?: string;
}

const NAME = { type: 'string', minLength: 1, maxLength: 128, description: 'A name for people.' } as const;
export const roleProperty = {
  type: 'string',
  enum: MEMBER_ROLES,
  description:
    '`viewer` sees everything, `member` also makes keys of their own, `admin` also changes members, keys and limits, `owner` also owners, and withdraws.',
} as const;
export const nameProperty = NAME;

export const newMemberSchema = {
  title: 'MemberToAdd',
  type: 'object',
  additionalProperties: false,
  required: ['account', 'role'],
  examples: [{ account: 'eip155:8453:0x71C7656EC7ab88b098defB751B7401B5f6d8976F', role: 'member', name: 'Research' }],
  properties: {
    account: {
      type: 'string',
      maxLength: 128,
      description: 'The account that the member signs in as: a wallet in CAIP-10, or any account id.',
      [DOCUMENTED]: { pattern: ACCOUNT_ID_PATTERN },
    },
    role: roleProperty,
    name: NAME,
  },
} as const;

/** Whether the caller acts as a member who has budgets or rules. Owners are limited by nobody but themselves. */
export async function isLimitedMember(
  { account, member }: Caller,
  { limits }: { readonly limits: Pick<LimitsStore, 'limitsOf'> },
): Promise<boolean> {
  if (member === undefined || member.role === 'owner') return false;
  return (await limits.limitsOf(account)).some(({ subject }) => subject === member.account);
}

export const memberParams = (params: Readonly<Record<string, object>> = {}) =>
  objectOf({ ...params, member: { type: 'string', description: 'Account of the member, percent-encoded.' } });

export const memberSchema = titled(
  'Member',
  objectOf({
    account: { type: 'string', description: 'The account that the member signs in as.' },
    caip_account_id: { type: 'string', description: 'CAIP-10.' },
    name: { type: 'string' },
    role: { type: 'string', enum: MEMBER_ROLES },
    created_at: { type: 'string' },
    keys: { type: 'integer', description: 'Keys of the member.' },
    usage_monthly: { type: 'number', description: 'USD that these keys have spent in this UTC month.' },
    budgets: limitsSchema.properties['budgets']!,
    ...callRulesView,
  }),
);

const KEYS_READ = 1_000;

export async function viewMembers(account: string, members: readonly AccountMember[], deps: MembersDeps) {
  const [keys, usage, limits] = await Promise.all([
    deps.keys.list(account, { offset: 0, limit: KEYS_READ }),
    deps.usage(account),
    deps.limits.limitsOf(account),
  ]);
  return Promise.all(
    members.map(async ({ member, name, role, createdAt }) => {
      const own = keys.filter((key) => key.member === member);
      const spent = own.reduce((sum, { hash }) => sum + (usage.get(hash)?.monthly ?? 0n), 0n);
      const set = limits.find(({ subject }) => subject === member)?.limits ?? NO_LIMITS;
      const { budgets } = await viewLimits(account, member, set, deps);
      return {
        account: member,
        caip_account_id: toCaip10(member, deps.networks),
        name,
        role,
        created_at: new Date(createdAt).toISOString(),
        keys: own.length,
        usage_monthly: toUsdNumber(spent),
        budgets,
        ...viewCallRules(set),
      };
    }),
  );
}

/** The new member that a body names. Throws GatewayError `invalid_request`, or `unprocessable` if it is one already. */
export async function newMemberOf(
  account: string,
  body: Pick<NewMemberBody, 'account'>,
  { networks, members }: Pick<MembersDeps, 'networks' | 'members'>,
): Promise<string> {
  const member = parseAccountId(body.account, networks);
  if (member === null)
    throw new GatewayError(
      'invalid_request',
      'account must be a wallet in CAIP-10 (eip155:… or solana:…), tollgate:local:<name>, or oauth:<issuer>:<subject>',
      { param: 'account' },
    );
  if (member === account)
    throw new GatewayError('invalid_request', 'An account cannot be a member of itself', { param: 'account' });
  await refuseMember(account, member, members);
  return member;
}

async function refuseMember(account: string, member: string, members: MembersDeps['members']): Promise<void> {
  if (await members.find(account, member))
    throw new GatewayError('unprocessable', 'This account is already a member. Change the member with PATCH', {
      param: 'account',
    });
}

/**
 * Adds `member`, which newMemberOf gave. Throws GatewayError `unprocessable` if the account has too many members, or if
 * another request has added the same one meanwhile.
 */
export async function addMember(
  account: string,
  member: string,
  { role, name }: NewMemberBody,
  { members }: Pick<MembersDeps, 'members'>,
): Promise<AccountMember> {
  const added = await members.add({ account, member, role, name: readName(name ?? '', 'name') || member });
  if (added !== null) return added;
  await refuseMember(account, member, members);
  throw new GatewayError('unprocessable', `An account has at most ${MEMBERS_MAX} members`);
}

/** Finds the member of a path. Throws GatewayError `not_found`. */
export async function findMember(account: string, text: string, { members }: Pick<MembersDeps, 'members'>) {
  const member = await members.find(account, text);
  if (member === null) throw new GatewayError('not_found', 'Member not found', { param: 'member' });
  return member;
}

/** Throws the reason why a member could not be changed or removed: GatewayError `unprocessable` or `not_found`. */
export async function refuseChange(
  account: string,
  member: string,
  deps: Pick<MembersDeps, 'members'>,
): Promise<never> {
  await findMember(account, member, deps);
  throw new GatewayError('unprocessable', 'This is the last owner. Make another member an owner first', {
    param: 'member',
  });
}

interface MemberParams extends AccountParams {
  readonly member: string;
}

const MEMBERS = '/accounts/:id/members';
const MEMBER = '/accounts/:id/members/:member';
const CONFIGURE = { adminRole: 'configure' } as const;

/**
 * An administrator who makes a member that can spend the money of an account can make one of themselves, so this needs
 * the role that moves money, too. It holds for each role that is set, not only for a higher one: the member may have
 * lost the role meanwhile.
 */
function refuseSpender({ raw }: Pick<FastifyRequest, 'raw'>, role: MemberRole | undefined): void {
  if (role !== undefined && reaches(role, 'member'))
    requireRole(raw, 'credit', `The role ${role} can spend the money of the account: setting it`);
}
const ofAMember = memberParams(accountParams.properties);

export function addAdminMembersRoutes(app: FastifyInstance, deps: AdminAccountsDeps & MembersDeps): void {
  const listed = {
    ...ADMINISTRATION,
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
    ...ADMINISTRATION,
    summary: 'Add a member to an account',
    description:
      'An account with members is an organisation. A role that can spend, from `member` up, also needs the admin role `credit`.',
    params: accountParams,
    body: newMemberSchema,
    response: { 201: dataOf(memberSchema) },
  };
  app.post<{ Params: AccountParams; Body: NewMemberBody }>(
    MEMBERS,
    { schema: added, config: CONFIGURE },
    async (request, reply) => {
      const { params, body } = request;
      refuseSpender(request, body.role);
      const { account } = await findAccount(params.id, deps);
      const member = await newMemberOf(account, body, deps);
      const [data] = await viewMembers(account, [await addMember(account, member, body, deps)], deps);
      return reply.code(201).send({ data });
    },
  );
  const changed = {
    ...ADMINISTRATION,
    summary: 'Change a member of an account',
    description:
      'Sets what the request names. The rest stays. A role that can spend, from `member` up, also needs the admin role `credit`.',
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
    async (request) => {
      const { params, body } = request;
      const { role, name } = body;
      refuseSpender(request, role);
      const { account } = await findAccount(params.id, deps);
      const { member } = await findMember(account, params.member, deps);
      const result = await deps.members.change(account, member, {
        role,
        name: readName(name ?? '', 'name') || undefined,
      });
      if (result === null) return refuseChange(account, member, deps);
      const [data] = await viewMembers(account, [result], deps);
      return { data };
    },
  );
  const removed = {
    ...ADMINISTRATION,
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

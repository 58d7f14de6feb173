import { randomBytes } from 'node:crypto';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import type { Ledger } from '#billing';
import {
  type Caller,
  type MemberRole,
  MEMBER_ROLES,
  type AccountMember,
  neverHadMoney,
  organisationsMax,
  reaches,
} from '#accounts';
import type { Pipeline } from '#call';
import {
  refuseRestricted,
  requireAdmission,
  requireFreshSignature,
  requireFullRights,
  type KeyStore,
  type Nonces,
  type CallerOf,
} from '#auth';
import { localAccount } from '#accounts/names';
import { dataOf, listOf, objectOf, titled, pageSchema, type PageRange } from '../route-schemas.ts';
import { labelTaken, readCustomersLabel, readName } from './label.ts';
import { callRulesProperties, type CallRulesBody, parseCallRules, refuseLongPatterns } from './body-fields.ts';
import { limitsBodySchema, parseLimits, type LimitsBody } from './limits.ts';
import {
  addMember,
  findMember,
  isLimitedMember,
  memberParams,
  memberSchema,
  nameProperty,
  newMemberOf,
  newMemberSchema,
  refuseChange,
  roleProperty,
  viewMembers,
  type MembersDeps,
  type NewMemberBody,
} from './members.ts';

interface OwnMembersDeps extends MembersDeps {
  readonly admit: Pipeline['admit'];
  readonly keys: Pick<KeyStore, 'find' | 'list'>;
  readonly nonces: Pick<Nonces, 'use'>;
  readonly ledger: Pick<Ledger, 'balance' | 'budget' | 'isFunded'>;
}

interface MemberParams {
  readonly member: string;
}
interface ChangesBody extends Pick<LimitsBody, 'budgets'>, CallRulesBody {
  readonly role?: MemberRole;
  readonly name?: string;
}

const tags = ['Account'];
const OF_MEMBERS = { what: 'change members', instead: 'ask the operator' };
const OF_LIMITED = 'An admin who has budgets or rules as a member cannot give rights.';
const HOW = 'A member acts for the account with the header `x-tollgate-account`.';

/**
 * The routes for the caller's organisations, and for the members of the account that the caller acts for (its own or an
 * organisation).
 */
export function membersRoutes(deps: OwnMembersDeps): FastifyPluginAsync {
  return async (app) => {
    const admissionOf = requireAdmission(app, deps.admit);
    const callerOf: CallerOf = (request) => admissionOf(request).caller;
    addOrganisations(app, deps, callerOf);
    listMembers(app, deps, callerOf);
    createMember(app, deps, callerOf);
    changeMember(app, deps, callerOf);
    removeMember(app, deps, callerOf);
  };
}

const organisationSchema = titled(
  'Organisation',
  objectOf({
    account: { type: 'string', description: 'For `x-tollgate-account`.' },
    label: { type: 'string' },
    role: { type: 'string', enum: MEMBER_ROLES, description: 'Yours.' },
    created_at: { type: 'string', description: 'When you became a member.' },
  }),
);

const viewOrganisation = ({ account, role, createdAt }: AccountMember, label: string) => ({
  account,
  label,
  role,
  created_at: new Date(createdAt).toISOString(),
});

function addOrganisations(app: FastifyInstance, deps: OwnMembersDeps, callerOf: CallerOf): void {
  const listed = {
    summary: 'List your organisations',
    description: `Lists the accounts that your account is a member of: first those that you made, then the others, the oldest first. ${HOW}`,
    tags,
    querystring: pageSchema,
    response: { 200: listOf(organisationSchema) },
  };
  app.get<{ Querystring: PageRange }>('/organisations', { schema: listed }, async (request) => {
    const { account, key } = callerOf(request);
    await refuseRestricted(deps.keys, key, 'see organisations');
    return {
      data: (await deps.members.accountsOf(account, request.query)).map((one) => viewOrganisation(one, one.label)),
    };
  });
  const schema = {
    summary: 'Create an organisation',
    description: `A new account of which your account is the owner. A label that another account has as its label or name is refused with 422. ${HOW} A wallet signs in for this with a nonce of \`/auth/nonce\`.`,
    tags,
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['label'],
      examples: [{ label: 'Acme', name: 'Operations' }],
      properties: {
        label: { ...nameProperty, description: 'Name of the organisation.' },
        name: { ...nameProperty, description: 'Your name in it.' },
      },
    },
    response: { 201: dataOf(organisationSchema) },
  };
  app.post<{ Body: { readonly label: string; readonly name?: string } }>(
    '/organisations',
    { schema },
    async (request, reply) => {
      const caller = callerOf(request);
      await requireFullRights(deps.keys, caller, { what: 'create an organisation', instead: 'sign in with a wallet' });
      await requireFreshSignature(caller, deps.nonces);
      const { label, name } = request.body;
      const account = localAccount(`org-${randomBytes(8).toString('hex')}`);
      const organisation = { account, label: readCustomersLabel(label, account) || account, member: caller.account };
      const isUnfunded = await neverHadMoney(deps.ledger, caller.account);
      const most = organisationsMax(isUnfunded);
      const owner = await deps.members.makeOrganisation({
        ...organisation,
        most,
        name: readName(name ?? '', 'name') || caller.account,
      });
      if (owner === null) {
        if ((await deps.members.countMade(caller.account)) < most) throw labelTaken(organisation.label);
        throw new GatewayError(
          'unprocessable',
          isUnfunded
            ? `An account that never had 0.10 USD makes at most ${most} organisation. Add money first, or ask the operator for another one`
            : `You have made ${most} organisations, which is the maximum. Ask the operator for another one`,
        );
      }
      return reply.code(201).send({ data: viewOrganisation(owner, organisation.label) });
    },
  );
}

function listMembers(app: FastifyInstance, deps: OwnMembersDeps, callerOf: CallerOf): void {
  const schema = {
    summary: 'List members',
    description: `Lists the members of your account, or of the account that you act for, with the spending of their keys. ${HOW}`,
    tags,
    response: { 200: listOf(memberSchema) },
  };
  app.get('/members', { schema, config: { actsAs: 'viewer' } }, async (request) => {
    const { account, key } = callerOf(request);
    await refuseRestricted(deps.keys, key, 'see members');
    return { data: await viewMembers(account, await deps.members.list(account), deps) };
  });
}

/**
 * Throws unless the caller may add, change or remove members with these roles. Only owners may do this with owners. The
 * credentials of the account itself count as an owner's.
 */
function refuseBelow(caller: Caller, ...roles: readonly (MemberRole | undefined)[]): void {
  const own = caller.member?.role ?? 'owner';
  if (roles.includes('owner') && !reaches(own, 'owner'))
    throw new GatewayError(
      'permission_denied',
      `Only an owner can add, change or remove an owner. Your role is ${own}`,
    );
}

/**
 * Throws if an admin who has budgets or rules as a member gives rights: a second account of theirs would have none, or
 * would accept their calls. Owners may, because nobody limits them but they themselves.
 */
async function refuseLimited(caller: Caller, deps: Pick<MembersDeps, 'limits'>): Promise<void> {
  if (!(await isLimitedMember(caller, deps))) return;
  throw new GatewayError(
    'permission_denied',
    'You have budgets or rules as a member, so you cannot add members, or change their roles, budgets and rules. Ask an owner, or an admin without',
  );
}

function createMember(app: FastifyInstance, deps: OwnMembersDeps, callerOf: CallerOf): void {
  const schema = {
    summary: 'Add a member',
    description: `Lets another account act for yours, or for the one that you act for. ${OF_LIMITED} ${HOW} A wallet signs in for this with a nonce of \`/auth/nonce\`.`,
    tags,
    body: newMemberSchema,
    response: { 201: dataOf(memberSchema) },
  };
  app.post<{ Body: NewMemberBody }>('/members', { schema, config: { actsAs: 'admin' } }, async (request, reply) => {
    const caller = callerOf(request);
    await requireFullRights(deps.keys, caller, OF_MEMBERS);
    refuseBelow(caller, request.body.role);
    await refuseLimited(caller, deps);
    // The member is checked first, so that one who cannot be added doesn't use up the nonce.
    const member = await newMemberOf(caller.account, request.body, deps);
    await requireFreshSignature(caller, deps.nonces);
    const added = await addMember(caller.account, member, request.body, deps);
    const [data] = await viewMembers(caller.account, [added], deps);
    return reply.code(201).send({ data });
  });
}

function changeMember(app: FastifyInstance, deps: OwnMembersDeps, callerOf: CallerOf): void {
  const schema = {
    summary: 'Change a member',
    description:
      'Changes only the given fields: the role, the name, and what the keys of the member may spend and call. `budgets` and `allowed_services` replace the lists. ' +
      `${OF_LIMITED} A wallet signs in for this with a nonce of \`/auth/nonce\`.`,
    tags,
    params: memberParams(),
    body: {
      type: 'object',
      additionalProperties: false,
      examples: [{ role: 'admin', budgets: [{ limit: 20, limit_reset: 'monthly' }] }],
      properties: {
        role: roleProperty,
        name: nameProperty,
        budgets: limitsBodySchema.properties.budgets,
        ...callRulesProperties("each of the member's keys, besides the key's own rules"),
      },
    },
    response: { 200: dataOf(memberSchema) },
  };
  app.patch<{ Params: MemberParams; Body: ChangesBody }>(
    '/members/:member',
    { schema, config: { actsAs: 'admin' } },
    async (request) => {
      const caller = callerOf(request);
      const { account } = caller;
      await requireFullRights(deps.keys, caller, OF_MEMBERS);
      const before = await findMember(account, request.params.member, deps);
      const { role, name, budgets } = request.body;
      const rules = parseCallRules(request.body);
      const limits = { ...(budgets === undefined ? {} : parseLimits({ budgets })), ...rules };
      refuseBelow(caller, before.role, role);
      const limited = Object.keys(limits).length > 0;
      if (caller.member?.account === before.member && limited && caller.member.role !== 'owner')
        throw new GatewayError(
          'permission_denied',
          'You cannot change your own budgets and rules. Ask another admin or an owner',
        );
      if (limited || role !== undefined) await refuseLimited(caller, deps);
      await refuseLongPatterns(deps.ledger, account, rules);
      await requireFreshSignature(caller, deps.nonces);
      const changes = { role, name: readName(name ?? '', 'name') || undefined, limits };
      const changed = await deps.members.change(account, before.member, changes);
      if (changed === null) return refuseChange(account, before.member, deps);
      const [data] = await viewMembers(account, [changed], deps);
      return { data };
    },
  );
}

function removeMember(app: FastifyInstance, deps: OwnMembersDeps, callerOf: CallerOf): void {
  const schema = {
    summary: 'Remove a member',
    description:
      'The member loses access and their keys are deleted: at once on this gateway, within a second on every other gateway. Any member may leave. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    params: memberParams(),
    response: { 200: objectOf({ removed: { type: 'boolean' } }) },
  };
  app.delete<{ Params: MemberParams }>(
    '/members/:member',
    { schema, config: { actsAs: 'viewer' } },
    async (request) => {
      const caller = callerOf(request);
      const { account, member } = caller;
      // A member who leaves only has to prove who they are, so an access token is enough.
      const leaves = member !== undefined && member.account === request.params.member;
      if (!leaves) await requireFullRights(deps.keys, caller, OF_MEMBERS);
      const before = await findMember(account, request.params.member, deps);
      if (member && !leaves) {
        if (!reaches(member.role, 'admin'))
          throw new GatewayError(
            'permission_denied',
            `This needs the role admin of the account, but your role is ${member.role}`,
          );
        refuseBelow(caller, before.role);
      }
      await requireFreshSignature(caller, deps.nonces);
      if (!(await deps.members.remove(account, before.member))) return refuseChange(account, before.member, deps);
      return { removed: true };
    },
  );
}

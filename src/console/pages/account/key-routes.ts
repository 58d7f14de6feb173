import type { FastifyInstance } from 'fastify';
import { GatewayError } from '#errors';
import { isDevelopment, type Caller, type LimitsStore, reaches } from '#accounts';
import {
  isRestricted,
  requireFullRights,
  type KeyChanges,
  type KeyStore,
  requireFreshSignature,
  type Nonces,
} from '#auth/keys';
import { DEVELOPMENT_ACCOUNT } from '#accounts/names';
import { ADMINISTRATION, dataOf, objectOf, pageSchema, type PageRange } from '../route-schemas.ts';
import {
  changeKey,
  createKey,
  deletedKeySchema,
  deleteKey,
  keyListSchema,
  keyNotFound,
  keyParams,
  listKeys,
  newKeySchema,
  oneKeySchema,
  type KeysDeps,
  keyChangesSchema,
  keySchema,
  newKeyBodySchema,
  type RotationBody,
  rotateKey,
  rotationSchema,
  parseKeyBody,
  viewKey,
  type KeyBody,
} from './keys.ts';
import { accountParams, findAccount, type AdminAccountsDeps, type AccountParams } from './admin-accounts.ts';
import type { LimitsDeps } from './limits.ts';
import { isLimitedMember } from './members.ts';
import type { AdmissionOf } from '#auth';

export interface OwnKeysDeps extends KeysDeps {
  readonly nonces: Pick<Nonces, 'use'>;
  readonly limits: Pick<LimitsStore, 'limitsOf'>;
  /** Rejects with GatewayError `rate_limit_exceeded`. */
  readonly countNewKey: (caller: Caller) => Promise<void>;
}
interface HashParams {
  readonly hash: string;
}

const tags = ['Account'];
const params = keyParams();
const OF_KEYS = { what: 'create, change or delete keys', instead: 'ask the operator for one' };

/** Adds `/key` and `/keys`, the routes for the keys of the caller's own account. `app` must already admit callers. */
export function addKeysRoutes(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  listOwnKeys(app, deps, admissionOf);
  showOwnKey(app, deps, admissionOf);
  createOwnKey(app, deps, admissionOf);
  changeOwnKey(app, deps, admissionOf);
  rotateOwnKey(app, deps, admissionOf);
  deleteOwnKey(app, deps, admissionOf);
  showKeyInUse(app, deps, admissionOf);
}

function listOwnKeys(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'List your keys',
    description:
      'The keys of your account, the oldest first; a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only itself. The keys themselves cannot be shown again.',
    tags,
    // Clients of OpenRouter's API send more.
    querystring: { ...pageSchema, additionalProperties: true },
    response: { 200: keyListSchema },
  };
  app.get<{ Querystring: PageRange }>('/keys', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { caller } = admissionOf(request);
    if (!(await isRestricted(deps.keys, caller.key))) return listKeys(deps, caller.account, request.query);
    // The list has one key, so later pages are empty.
    const own = request.query.offset === 0 ? await deps.keys.find(caller.key!.hash) : null;
    return { data: own ? [await viewKey(own, deps)] : [] };
  });
}

function showOwnKey(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Show one of your keys',
    description:
      'A key of your account; a key with a spending limit, a rate, an expiry, a list of services, fixed tags or a price to ask above sees only itself.',
    tags,
    params,
    response: { 200: oneKeySchema },
  };
  app.get<{ Params: HashParams }>('/keys/:hash', { config: { actsAs: 'viewer' }, schema }, async (request) => {
    const { caller } = admissionOf(request);
    const { hash } = request.params;
    const visible = caller.key?.hash === hash || !(await isRestricted(deps.keys, caller.key));
    const record = visible ? await deps.keys.find(hash) : null;
    if (record?.account !== caller.account) throw keyNotFound();
    return { data: await viewKey(record, deps) };
  });
}

function createOwnKey(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Create a key',
    description:
      'A new key for your account, with a spending limit, an expiry and a list of services where you want them. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    body: newKeyBodySchema('NewKeyRequest', { label: 'my agent', limit: 5, limit_reset: 'monthly' }),
    response: { 201: newKeySchema },
  };
  app.post<{ Body: KeyBody }>('/keys', { config: { actsAs: 'member' }, schema }, async (request, reply) => {
    const { caller } = admissionOf(request);
    await requireFullRights(deps.keys, caller, OF_KEYS);
    // The body is checked first, so that an invalid body doesn't use up the nonce.
    parseKeyBody(request.body, deps.now());
    await deps.countNewKey(caller);
    await requireFreshSignature(caller, deps.nonces);
    const kind = isDevelopment(caller) ? 'development' : 'live';
    return reply.code(201).send(
      await createKey(deps, caller.account, kind, request.body, {
        member: caller.member?.account ?? null,
        setter: 'account',
        maker: caller,
      }),
    );
  });
}

function changeOwnKey(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Change a key',
    description:
      'Changes only the given fields. A disabled key is refused until it is enabled again. A wallet signs in with a nonce of `/auth/nonce` for anything but a new name or a stop. A session needs more than its cookie to stop a key that is not its own.',
    tags,
    params,
    body: keyChangesSchema,
    response: { 200: oneKeySchema },
  };
  app.patch<{ Params: HashParams; Body: KeyBody | undefined }>(
    '/keys/:hash',
    { config: { actsAs: 'member' }, schema },
    async (request) => {
      const { caller } = admissionOf(request);
      await requireFullRights(deps.keys, caller, OF_KEYS);
      const changes = parseKeyBody(request.body ?? {}, deps.now());
      const { hash } = request.params;
      await refuseOthersKey(caller, hash, deps.keys);
      if (mayLoosen(changes)) await refuseGivingRights(caller, hash, deps, 'loosen');
      if (mayLoosen(changes) || (changes.disabled === true && isOnlySession(caller, hash)))
        await requireFreshSignature(caller, deps.nonces);
      return changeKey(deps, caller.account, hash, changes, 'account');
    },
  );
}

function rotateOwnKey(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Rotate a key',
    description:
      'Gives the key another text; its hash, name, limits, what it has spent and its figures stay. The text before is refused at once, within a second on every other gateway, or after `grace_seconds`, in which it calls and reads, and nothing else; one from an earlier rotation is refused at once. Sessions of browsers that the key began end within 5 seconds. A wallet signs in for this with a nonce of `/auth/nonce`.',
    tags,
    params,
    body: rotationSchema,
    response: { 201: newKeySchema },
  };
  app.post<{ Params: HashParams; Body: RotationBody }>(
    '/keys/:hash/rotate',
    { config: { actsAs: 'member' }, schema },
    async (request, reply) => {
      const { caller } = admissionOf(request);
      await requireFullRights(deps.keys, caller, OF_KEYS);
      const { hash } = request.params;
      await refuseOthersKey(caller, hash, deps.keys);
      await refuseGivingRights(caller, hash, deps, 'rotate');
      await deps.countNewKey(caller);
      await requireFreshSignature(caller, deps.nonces);
      return reply.code(201).send(await rotateKey(deps, caller.account, hash, request.body));
    },
  );
}

/**
 * Whether a change may give a key more rights. Such a change needs the same proof as creating a key, whatever
 * credential the request has.
 */
function mayLoosen({ label: _label, disabled, ...others }: KeyChanges): boolean {
  return disabled === false || Object.keys(others).length > 0;
}

/**
 * Whether the request has only a session cookie and changes a key that isn't the session's own. With a stolen cookie
 * one could otherwise stop all programs of the account.
 */
const isOnlySession = ({ session, key }: Caller, hash: string): boolean => session !== undefined && key?.hash !== hash;

function deleteOwnKey(app: FastifyInstance, { keys, nonces }: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const schema = {
    summary: 'Delete a key',
    description:
      'Revokes the key permanently: at once on this gateway, within a second on every other gateway. Any key may delete itself. A session needs more than its cookie for a key that is not its own.',
    tags,
    params,
    response: { 200: deletedKeySchema },
  };
  app.delete<{ Params: HashParams }>('/keys/:hash', { config: { actsAs: 'member' }, schema }, async (request) => {
    const { caller } = admissionOf(request);
    const { hash } = request.params;
    if (caller.key?.hash !== hash) await requireFullRights(keys, caller, OF_KEYS);
    await refuseOthersKey(caller, hash, keys);
    if (isOnlySession(caller, hash)) await requireFreshSignature(caller, nonces);
    return deleteKey(keys, caller.account, hash);
  });
}

/** Members below admin may change only their own keys. For all other keys they get "not found". */
async function refuseOthersKey({ account, member }: Caller, hash: string, keys: Pick<KeyStore, 'find'>): Promise<void> {
  if (member === undefined || reaches(member.role, 'admin')) return;
  const record = await keys.find(hash);
  if (record?.account !== account || record.member !== member.account) throw keyNotFound();
}

/**
 * Whoever has the text of a key has the rights of its holder: of the account for a key of its own, else of a member.
 * An admin must not get those of an owner, or of a member who has other budgets, by rotating a key, nor by taking its
 * limits from one that they were given. Throws GatewayError `permission_denied`.
 */
async function refuseGivingRights(
  caller: Caller,
  hash: string,
  deps: Pick<OwnKeysDeps, 'keys' | 'members' | 'limits'>,
  what: 'rotate' | 'loosen',
): Promise<void> {
  const { account, member } = caller;
  if (member === undefined || member.role === 'owner') return;
  const record = await deps.keys.find(hash);
  if (record?.account !== account || record.member === member.account) return;
  if (what === 'rotate')
    throw new GatewayError(
      'permission_denied',
      'Whoever rotates a key gets its text, and with it the rights of its holder: only an owner, or the member whose key it is, can do so. You can disable or delete it',
    );
  const holder = record.member === null ? 'owner' : (await deps.members.find(account, record.member))?.role;
  if (holder === 'owner')
    throw new GatewayError(
      'permission_denied',
      'This key has the rights of an owner, so only an owner can change its limits and rules, or enable it. You can rename, disable or delete it',
    );
  if (await isLimitedMember(caller, deps))
    throw new GatewayError(
      'permission_denied',
      'You have budgets or rules as a member, so you cannot change the limits and rules of the keys of others. Ask an owner, or an admin without',
    );
}

const rateLimitSchema = objectOf({
  requests: { type: 'integer', description: 'Requests in an interval. A burst may go beyond it for a moment.' },
  tokens: { type: 'integer' },
  interval: { type: 'string' },
  note: { type: 'string' },
});

/** Clients of other gateways require a `note`. */
const RATE_NOTE = 'The steady rate. The headers x-ratelimit-* of every answer tell what is left.';

function showKeyInUse(app: FastifyInstance, deps: OwnKeysDeps, admissionOf: AdmissionOf): void {
  const data = {
    ...keySchema,
    title: 'KeyInUse',
    properties: { ...keySchema.properties, rate_limit: rateLimitSchema },
  };
  const schema = {
    summary: 'Show the key in use',
    description: 'The key that this request is made with: its limits, what it has spent, and its rate.',
    tags,
    response: { 200: dataOf(data) },
  };
  app.get('/key', { schema }, async (request) => {
    const { caller, rate } = admissionOf(request);
    if (caller.key === null)
      throw new GatewayError('not_found', 'This request has no API key. /api/v1/keys lists the keys of the account');
    const record = await deps.keys.find(caller.key.hash);
    if (!record) throw keyNotFound();
    const { requests, tokens } = rate;
    return {
      data: {
        ...(await viewKey(record, deps)),
        rate_limit: { requests: requests.perMinute, tokens: tokens.perMinute, interval: '60s', note: RATE_NOTE },
      },
    };
  });
}

export type AdminKeysDeps = AdminAccountsDeps &
  KeysDeps & {
    readonly limits: LimitsDeps['limits'];
    readonly keyRate: () => number;
  };

interface KeyParams extends AccountParams {
  readonly hash: string;
}
interface NewKeyBody extends KeyBody {
  readonly development?: boolean;
}

const KEYS = '/accounts/:id/keys';
const KEY = '/accounts/:id/keys/:hash';
const CREDIT = { adminRole: 'credit' } as const;
/** When a new key of an account that is not open can be used. */
const UNTIL = {
  frozen: 'the key makes no calls until the account is unfrozen',
  closed: 'the key is refused until the account is reopened',
} as const;
const ofAKey = keyParams(accountParams.properties);

export function addAdminKeyRoutes(app: FastifyInstance, deps: AdminKeysDeps): void {
  createAccountKey(app, deps);
  listAccountKeys(app, deps);
  changeAccountKey(app, deps);
  rotateAccountKey(app, deps);
  deleteAccountKey(app, deps);
}

function createAccountKey(app: FastifyInstance, deps: AdminKeysDeps): void {
  const development = {
    type: 'boolean',
    description: 'A key for play money, which production refuses. Every key of the account `dev` is one.',
  };
  const schema = {
    ...ADMINISTRATION,
    summary: 'Create a key for an account',
    description: 'The key itself is in the answer, and is never shown again.',
    params: accountParams,
    body: newKeyBodySchema(
      'NewAccountKeyRequest',
      { name: 'laptop', limit: 5, limit_reset: 'monthly' },
      { development },
    ),
    response: { 201: newKeySchema },
  };
  app.post<{ Params: AccountParams; Body: NewKeyBody }>(
    KEYS,
    { schema, config: CREDIT },
    async ({ params, body }, reply) => {
      const { account, state } = await findAccount(params.id, deps);
      // Every key to the development account is a development key. A production gateway on the same database must
      // refuse it, because the account has play money.
      const kind = body.development || account === DEVELOPMENT_ACCOUNT ? 'development' : 'live';
      if (kind === 'live') await refuseRate(deps, account, body);
      const { warnings = [], ...createdKey } = await createKey(deps, account, kind, body, {
        member: null,
        setter: 'operator',
      });
      const all = state === 'open' ? warnings : [...warnings, `The account is ${state}: ${UNTIL[state]}`];
      return reply.code(201).send({ ...createdKey, ...(all.length === 0 ? {} : { warnings: all }) });
    },
  );
}

/**
 * Throws GatewayError for a rate that would have no effect: the rates of keys only lower those of the gateway, or those
 * that the operator set for their account.
 */
async function refuseRate({ keyRate, limits }: AdminKeysDeps, account: string, body: KeyBody): Promise<void> {
  const { requests_per_minute: rate = null } = body;
  if (rate === null || rate <= keyRate()) return;
  const most = Math.max(keyRate(), (await limits.get(account, 'operator')).requestsPerMinute ?? 0);
  if (rate <= most) return;
  throw new GatewayError(
    'unprocessable',
    `A key of this account has at most ${most} requests per minute. Set the rate of the account first: PATCH /admin/v1/accounts/${account}/limits {"requests_per_minute":${rate}}. Each of its keys may then use it`,
    { param: 'requests_per_minute' },
  );
}

function listAccountKeys(app: FastifyInstance, deps: AdminKeysDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: "List an account's keys",
    description: 'The oldest first, with limits and use, without the keys themselves.',
    params: accountParams,
    querystring: pageSchema,
    response: { 200: keyListSchema },
  };
  app.get<{ Params: AccountParams; Querystring: PageRange }>(KEYS, { schema }, async ({ params, query }) => {
    const { account } = await findAccount(params.id, deps);
    return listKeys(deps, account, query);
  });
}

function changeAccountKey(app: FastifyInstance, deps: AdminKeysDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Change a key of an account',
    description: 'Changes only the given fields. A disabled key is refused until it is enabled again.',
    params: ofAKey,
    body: keyChangesSchema,
    response: { 200: oneKeySchema },
  };
  app.patch<{ Params: KeyParams; Body: KeyBody | undefined }>(
    KEY,
    { schema, config: CREDIT },
    async ({ params, body }) => {
      const { account } = await findAccount(params.id, deps);
      if (account !== DEVELOPMENT_ACCOUNT) await refuseRate(deps, account, body ?? {});
      return changeKey(deps, account, params.hash, parseKeyBody(body ?? {}, deps.now()), 'operator');
    },
  );
}

function rotateAccountKey(app: FastifyInstance, deps: AdminKeysDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Rotate a key of an account',
    description:
      'Gives the key another text, which is in the answer and is never shown again. Its hash, name, limits, spending and figures stay. The text before is refused at once, or after `grace_seconds`, in which it calls and reads, and nothing else.',
    params: ofAKey,
    body: rotationSchema,
    response: { 201: newKeySchema },
  };
  app.post<{ Params: KeyParams; Body: RotationBody }>(
    `${KEY}/rotate`,
    { schema, config: CREDIT },
    async ({ params, body }, reply) => {
      const { account } = await findAccount(params.id, deps);
      return reply.code(201).send(await rotateKey(deps, account, params.hash, body));
    },
  );
}

function deleteAccountKey(app: FastifyInstance, deps: AdminKeysDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Delete a key of an account',
    description: 'Revokes the key permanently: at once on this gateway, within a second on every other gateway.',
    params: ofAKey,
    response: { 200: deletedKeySchema },
  };
  app.delete<{ Params: KeyParams }>(KEY, { schema, config: CREDIT }, async ({ params }) => {
    const { account } = await findAccount(params.id, deps);
    return deleteKey(deps.keys, account, params.hash);
  });
}

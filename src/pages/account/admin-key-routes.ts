import type { FastifyInstance, FastifySchema } from 'fastify';
import { DEVELOPMENT_ACCOUNT } from '#auth/accounts';
import {
  changeKey,
  createKey,
  deletedKeySchema,
  deleteKey,
  keyListSchema,
  keyParams,
  listKeys,
  newKeySchema,
  oneKeySchema,
  type KeysDeps,
} from './account-keys.ts';
import { accountParams, findAccount, type AdminAccountsDeps } from './admin-accounts.ts';
import { newKeyBodySchema, keyChangesSchema, parseKeyBody, type KeyBody } from './key-view.ts';
import { pageSchema, type Page } from './page.ts';

type AdminKeysDeps = AdminAccountsDeps & KeysDeps;

interface AccountParams {
  readonly id: string;
}
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

/**
 * Adds the routes for the keys of every account to `app`, which only the operator can access. `common` is part of every
 * route's schema.
 */
export function addAdminKeyRoutes(app: FastifyInstance, deps: AdminKeysDeps, common: FastifySchema): void {
  createAccountKey(app, deps, common);
  listAccountKeys(app, deps, common);
  changeAccountKey(app, deps, common);
  deleteAccountKey(app, deps, common);
}

function createAccountKey(app: FastifyInstance, deps: AdminKeysDeps, common: FastifySchema): void {
  const development = {
    type: 'boolean',
    description: 'A key for play money, which production refuses. Every key of the account `dev` is one.',
  };
  const schema = {
    ...common,
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
      const { warnings = [], ...made } = await createKey(deps, account, kind, body, { member: null, by: 'operator' });
      const all = state === 'open' ? warnings : [...warnings, `The account is ${state}: ${UNTIL[state]}`];
      return reply.code(201).send({ ...made, ...(all.length === 0 ? {} : { warnings: all }) });
    },
  );
}

function listAccountKeys(app: FastifyInstance, deps: AdminKeysDeps, common: FastifySchema): void {
  const schema = {
    ...common,
    summary: "List an account's keys",
    description: 'The oldest first, with limits and use, without the keys themselves.',
    params: accountParams,
    querystring: pageSchema,
    response: { 200: keyListSchema },
  };
  app.get<{ Params: AccountParams; Querystring: Page }>(KEYS, { schema }, async ({ params, query }) => {
    const { account } = await findAccount(params.id, deps);
    return listKeys(deps, account, query);
  });
}

function changeAccountKey(app: FastifyInstance, deps: AdminKeysDeps, common: FastifySchema): void {
  const schema = {
    ...common,
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
      return changeKey(deps, account, params.hash, parseKeyBody(body ?? {}, deps.now()), 'operator');
    },
  );
}

function deleteAccountKey(app: FastifyInstance, deps: AdminKeysDeps, common: FastifySchema): void {
  const schema = {
    ...common,
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

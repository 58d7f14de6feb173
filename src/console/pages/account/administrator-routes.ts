import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { GatewayError } from '#errors';
import { DOCUMENTED } from '#http';
import type { AdminGate } from '#auth';
import {
  ADMIN_ROLES,
  type AdminAct,
  type AdminKeyRecord,
  type AdminKeys,
  type AdminLog,
  type AdminRole,
} from '#auth/keys';
import { ADMINISTRATION, dataOf, listOf, objectOf, titled, pageSchema, type PageRange } from '../route-schemas.ts';
import { parseTime } from './body-fields.ts';
import { readName } from './label.ts';

interface AdministratorDeps {
  readonly gate: AdminGate;
  readonly adminKeys: AdminKeys;
  readonly log: Pick<AdminLog, 'list'>;
  readonly now: () => number;
}

interface NewAdminKeyBody {
  readonly label: string;
  readonly roles: readonly AdminRole[];
  readonly expires_at?: string | null;
}

const TIME = { type: ['string', 'null'], description: 'RFC 3339.' };
const ROLES = { type: 'array', items: { type: 'string', enum: [...ADMIN_ROLES] } };

const keySchema = titled(
  'AdminKey',
  objectOf({
    id: { type: 'string', description: 'The first 16 hex digits of the SHA-256 of the key.' },
    label: { type: 'string' },
    roles: ROLES,
    state: { type: 'string', enum: ['active', 'expired', 'revoked'] },
    created_at: TIME,
    expires_at: TIME,
    revoked_at: TIME,
  }),
);

const actSchema = objectOf({
  id: { type: 'string' },
  at: TIME,
  actor: {
    type: 'string',
    description:
      'Id of the key; `root` is TOLLGATE_ADMIN_KEY, `command` a command on the database of a stopped gateway.',
  },
  label: { type: ['string', 'null'] },
  address: { type: 'string' },
  method: { type: 'string' },
  path: { type: 'string' },
  body: { type: ['string', 'null'], description: 'JSON, shortened, without secrets.' },
  status: { type: ['integer', 'null'], description: 'Status of the answer; null where the gateway ended before it.' },
});

/** The routes for administrators' keys and for the log of their changes. Register it under `/admin/v1`. */
export function administratorRoutes(deps: AdministratorDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', deps.gate);
    createKeyRoute(app, deps);
    listKeysRoute(app, deps);
    revokeKeyRoute(app, deps);
    logRoute(app, deps);
  };
}

function createKeyRoute(app: FastifyInstance, { adminKeys, now }: AdministratorDeps): void {
  const properties = {
    label: { type: 'string', minLength: 1, maxLength: 128, description: 'A name for people.' },
    roles: {
      ...ROLES,
      minItems: 1,
      uniqueItems: true,
      description:
        '`credit`: accounts, their keys and the money of accounts. `configure`: reloads, figures, members of accounts, and the limits that the operator sets for accounts. Every key can read; a key with only `read` can do nothing else.',
    },
    expires_at: {
      ...TIME,
      maxLength: 40,
      description: 'Time from which the key is refused (RFC 3339); null is never.',
      [DOCUMENTED]: { format: 'date-time' },
    },
  };
  const schema = {
    ...ADMINISTRATION,
    summary: 'Make an admin key',
    operationId: 'createAdminKey',
    description: 'A key with roles. It is shown once. Only TOLLGATE_ADMIN_KEY may make keys.',
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['label', 'roles'],
      examples: [{ label: 'invoices', roles: ['credit'] }],
      properties,
    },
    response: { 201: objectOf({ data: keySchema, key: { type: 'string', description: 'Shown here alone.' } }) },
  };
  app.post<{ Body: NewAdminKeyBody }>('/admin-keys', { schema }, async ({ body }, reply) => {
    const { label, roles, expires_at: expires = null } = body;
    const expiresAt = expires === null ? null : parseTime(expires);
    if (expiresAt !== null && !(expiresAt > now()))
      throw new GatewayError('invalid_request', 'expires_at must be a time in the future, with time zone (RFC 3339)', {
        param: 'expires_at',
      });
    const created = await adminKeys.create({ label: readName(label, 'label'), roles, expiresAt });
    if (created === null) throw new GatewayError('invalid_request', 'There are too many admin keys. Revoke some first');
    return reply
      .code(201)
      .header('cache-control', 'no-store')
      .send({ data: viewKey(created.record, now()), key: created.text });
  });
}

function listKeysRoute(app: FastifyInstance, { adminKeys, now }: AdministratorDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List admin keys',
    description: 'Keys with roles, the oldest first, revoked ones too. TOLLGATE_ADMIN_KEY is not among them.',
    querystring: pageSchema,
    response: { 200: listOf(keySchema) },
  };
  app.get<{ Querystring: PageRange }>('/admin-keys', { schema }, async ({ query }) => ({
    data: (await adminKeys.list(query)).map((record) => viewKey(record, now())),
  }));
}

function revokeKeyRoute(app: FastifyInstance, { adminKeys, now }: AdministratorDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'Revoke an admin key',
    description:
      'The key is refused from the next request on and stays in the list. Only TOLLGATE_ADMIN_KEY may revoke keys.',
    params: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string', maxLength: 64, description: 'Its id.' } },
    },
    response: { 200: dataOf(keySchema) },
  };
  app.delete<{ Params: { readonly id: string } }>('/admin-keys/:id', { schema }, async ({ params }) => {
    const record = await adminKeys.revoke(params.id);
    if (record === null) throw new GatewayError('not_found', 'There is no admin key with this id');
    return { data: viewKey(record, now()) };
  });
}

function logRoute(app: FastifyInstance, { log }: AdministratorDeps): void {
  const schema = {
    ...ADMINISTRATION,
    summary: 'List what administrators changed',
    operationId: 'listAdminActs',
    description:
      'Changes by the admin API and by commands, and refused ones of keys without the role, the newest first.',
    querystring: {
      type: 'object',
      properties: {
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 50, description: 'Entries at most.' },
        cursor: { type: 'string', maxLength: 64, description: '`next_cursor` of the page before.' },
      },
    },
    response: {
      200: objectOf({ data: { type: 'array', items: actSchema }, next_cursor: { type: ['string', 'null'] } }),
    },
  };
  app.get<{ Querystring: { readonly limit: number; readonly cursor?: string } }>(
    '/audit-log',
    { schema },
    async ({ query: { limit, cursor = null } }) => {
      const acts = await log.list({ before: cursor, limit });
      return { data: acts.map(viewAct), next_cursor: acts.length < limit ? null : acts.at(-1)!.id };
    },
  );
}

const timeOf = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString());

function viewKey({ id, label, roles, createdAt, expiresAt, revokedAt }: AdminKeyRecord, now: number) {
  const isExpired = expiresAt !== null && expiresAt <= now;
  return {
    id,
    label,
    roles,
    state: revokedAt !== null ? 'revoked' : isExpired ? 'expired' : 'active',
    created_at: timeOf(createdAt),
    expires_at: timeOf(expiresAt),
    revoked_at: timeOf(revokedAt),
  };
}

const viewAct = ({ at, ...act }: AdminAct) => ({ ...act, at: timeOf(at) });

import type { IncomingMessage } from 'node:http';
import { GatewayError } from '#errors';
import { loadStatements, type Database, type Row } from '#store';
import { inTurn } from '#accounts';
import { createKey } from '../api-key.ts';

/**
 * A stored key of an administrator. Times are epoch milliseconds. The key's text is not stored and cannot be recovered.
 */
export interface AdminKeyRecord {
  /** The first 16 hex digits of the key's SHA-256. */
  readonly id: string;
  readonly label: string;
  readonly roles: readonly AdminRole[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** Valid keys that may exist at the same time. */
const ADMIN_KEYS_MAX = 1_000;

export interface AdminKeys {
  /** Creates a key. `text` is available only here. null if ADMIN_KEYS_MAX valid keys exist already. */
  create(
    fields: Pick<AdminKeyRecord, 'label' | 'roles' | 'expiresAt'>,
  ): Promise<{ readonly text: string; readonly record: AdminKeyRecord } | null>;
  /** A key that is valid now. null for an unknown, revoked or expired key. */
  find(hash: string): Promise<AdminKeyRecord | null>;
  /** Oldest first, including revoked and expired keys. */
  list(page: { readonly offset: number; readonly limit: number }): Promise<readonly AdminKeyRecord[]>;
  /** The key is refused from the next request on. null if there is no such key. */
  revoke(id: string): Promise<AdminKeyRecord | null>;
}

const SQL = loadStatements(import.meta.url, './sql/admin-keys.sql', [
  'insertAdminKey',
  'findAdminKey',
  'listAdminKeys',
  'revokeAdminKey',
]);
const ID_DIGITS = 16;

/** Keys of administrators in the database. All methods reject with the database's error. */
export function createAdminKeys(
  database: Pick<Database, 'query' | 'batch'>,
  { now }: { readonly now: () => number },
): AdminKeys {
  return {
    async create({ label, roles, expiresAt }) {
      const { text, hash } = createKey('admin');
      const fields = [hash, hash.slice(0, ID_DIGITS), label, JSON.stringify(roles), now(), expiresAt];
      const params = [...fields, ADMIN_KEYS_MAX];
      const [row] = await inTurn(database, 'admin keys', [{ statement: SQL.insertAdminKey, params }]);
      return row ? { text, record: recordOf(row) } : null;
    },
    async find(hash) {
      const [row] = await database.query(SQL.findAdminKey, [hash]);
      if (!row) return null;
      const record = recordOf(row);
      const { revokedAt, expiresAt } = record;
      return revokedAt === null && (expiresAt === null || now() < expiresAt) ? record : null;
    },
    list: async ({ offset, limit }) => (await database.query(SQL.listAdminKeys, [limit, offset])).map(recordOf),
    async revoke(id) {
      const [row] = await database.query(SQL.revokeAdminKey, [id, now()]);
      return row ? recordOf(row) : null;
    },
  };
}

function recordOf(row: Row): AdminKeyRecord {
  const roles = JSON.parse(row['roles'] as string) as readonly string[];
  const time = (name: 'expires_at' | 'revoked_at') => (row[name] === null ? null : Number(row[name]));
  return {
    id: row['id'] as string,
    label: row['label'] as string,
    roles: ADMIN_ROLES.filter((role) => roles.includes(role)),
    createdAt: Number(row['created_at']),
    expiresAt: time('expires_at'),
    revokedAt: time('revoked_at'),
  };
}

/**
 * Rights of an administrator's key. `credit` covers accounts, their keys and their money. `configure` covers reloads,
 * figures, bans, the operator's limits, and who looks at an account. Every key may read.
 */
export const ADMIN_ROLES = ['read', 'credit', 'configure'] as const;
export type AdminRole = (typeof ADMIN_ROLES)[number];

export interface Administrator {
  /** The id of the key. `root` for TOLLGATE_ADMIN_KEY. */
  readonly id: string;
  /** null: all rights, including those that no role has. */
  readonly roles: readonly AdminRole[] | null;
}

export const ROOT: Administrator = { id: 'root', roles: null };
/** A command on the machine with the database. */
export const COMMAND: Administrator = { id: 'command', roles: null };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The role that a change on this route needs. Without it, only TOLLGATE_ADMIN_KEY may make the change. */
    adminRole?: AdminRole;
    /** The log of changes keeps no body of a change on this route. */
    logsNoBody?: boolean;
  }
}

interface RoutedRequest {
  readonly method: string;
  readonly routeOptions?: { readonly config?: { readonly adminRole?: AdminRole } };
}

export const isReading = ({ method }: Pick<RoutedRequest, 'method'>): boolean => method === 'GET' || method === 'HEAD';

/** The role that a request needs. null if only TOLLGATE_ADMIN_KEY is allowed. */
export function roleFor(request: RoutedRequest): AdminRole | null {
  return isReading(request) ? 'read' : (request.routeOptions?.config?.adminRole ?? null);
}

export const mayAct = ({ roles }: Administrator, role: AdminRole | null): boolean =>
  roles === null || role === 'read' || (role !== null && roles.includes(role));

const administrators = new WeakMap<IncomingMessage, Administrator>();

export const noteAdministrator = (request: IncomingMessage, administrator: Administrator): void =>
  void administrators.set(request, administrator);

/** null before the gate, and for a request that the gate refused. */
export const administratorOf = (request: IncomingMessage): Administrator | null => administrators.get(request) ?? null;

/**
 * Throws GatewayError `permission_denied` unless the administrator of a request has the role, too. It is for a change
 * that needs another role than that of its route because of what it sets.
 */
export function requireRole(request: IncomingMessage, role: AdminRole, what: string): void {
  const administrator = administratorOf(request);
  if (administrator === null || !mayAct(administrator, role))
    throw new GatewayError('permission_denied', `${what} needs an admin key with the role ${role}, too`);
}

import type { IncomingMessage } from 'node:http';

/**
 * Rights of an administrator's key. `credit` covers accounts, their keys and their money. `configure` covers reloads,
 * figures and permissions: members, the right to withdraw, and the operator's limits. Every key may read.
 */
export const ADMIN_ROLES = ['read', 'credit', 'configure'] as const;
export type AdminRole = (typeof ADMIN_ROLES)[number];

/** The administrator who sent a request. */
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

/** Stores the administrator of a request, for the handlers after the gate. */
export const noteAdministrator = (request: IncomingMessage, administrator: Administrator): void =>
  void administrators.set(request, administrator);

/** null before the gate, and for a request that the gate refused. */
export const administratorOf = (request: IncomingMessage): Administrator | null => administrators.get(request) ?? null;

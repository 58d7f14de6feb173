import type { IncomingMessage } from 'node:http';

/**
 * Rights of an administrator's key. `credit`: accounts, their keys and their money. `configure`: reloads, figures, and
 * who may do what: members, who may withdraw, and the operator's limits. Every key reads.
 */
export const ADMIN_ROLES = ['read', 'credit', 'configure'] as const;
export type AdminRole = (typeof ADMIN_ROLES)[number];

/** An administrator as a request showed. */
export interface Administrator {
  /** Id of the key; `root` for TOLLGATE_ADMIN_KEY. */
  readonly id: string;
  /** null: every role, and what no role may. */
  readonly roles: readonly AdminRole[] | null;
}

export const ROOT: Administrator = { id: 'root', roles: null };
/** A command of the machine that has the database. */
export const COMMAND: Administrator = { id: 'command', roles: null };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The role that a change needs. Without it only TOLLGATE_ADMIN_KEY may. */
    adminRole?: AdminRole;
  }
}

interface RoutedRequest {
  readonly method: string;
  readonly routeOptions?: { readonly config?: { readonly adminRole?: AdminRole } };
}

export const isReading = ({ method }: Pick<RoutedRequest, 'method'>): boolean => method === 'GET' || method === 'HEAD';

/** The role that a request needs; null for TOLLGATE_ADMIN_KEY alone. */
export function roleFor(request: RoutedRequest): AdminRole | null {
  return isReading(request) ? 'read' : (request.routeOptions?.config?.adminRole ?? null);
}

export const mayAct = ({ roles }: Administrator, role: AdminRole | null): boolean =>
  roles === null || role === 'read' || (role !== null && roles.includes(role));

const administrators = new WeakMap<IncomingMessage, Administrator>();

/** Notes who sends a request, for those who handle it after the gate. */
export const noteAdministrator = (request: IncomingMessage, administrator: Administrator): void =>
  void administrators.set(request, administrator);

/** null before the gate, and for a request that it did not let pass. */
export const administratorOf = (request: IncomingMessage): Administrator | null => administrators.get(request) ?? null;

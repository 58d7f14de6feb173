import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createTrust, GatewayError } from '#wire';
import { createAdminGuard } from './admin-key.ts';
import { parseKey } from './accounts/api-key.ts';
import type { AdminKeys } from './administrators/admin-keys.ts';
import type { AdminLog } from './administrators/admin-log.ts';
import { type Administrator, mayAct, noteAdministrator, roleFor, ROOT } from './administrators/admin-roles.ts';
import { factsOf } from './administrators/log-acts.ts';
import type { Attempts } from './attempts.ts';
import { bearerOf, refuseRepeatedCredentials } from './credential.ts';
import type { AdminSessions } from './sessions/admin-sessions.ts';

/**
 * Lets an operator's requests pass, by the admin key or by the cookie of a session. It is the `onRequest` of every
 * route that takes the admin key. Rejects with
 * GatewayError `unauthorized` on another key, `rate_limit_exceeded` after too many wrong ones from the address,
 * `permission_denied` from outside of the networks. Nobody keeps the answer to a cookie, unless its route says so.
 */
export type AdminGate = (
  request: Pick<
    FastifyRequest,
    'ip' | 'headers' | 'raw' | 'method' | 'url' | 'protocol' | 'host' | 'routeOptions' | 'body'
  >,
  reply: Pick<FastifyReply, 'header'>,
) => Promise<void>;

interface AdminGateOptions {
  /** null: only keys of `adminKeys` pass. */
  readonly adminKey: string | null;
  /** Keys with roles. Default: only the admin key counts. */
  readonly adminKeys?: Pick<AdminKeys, 'find'>;
  /** Told of a key whose roles do not allow a change. */
  readonly log?: Pick<AdminLog, 'note'>;
  /** IP addresses and networks that the key is taken from; empty: everywhere. */
  readonly networks: readonly string[];
  /** Sessions of operators' browsers. Default: only the key counts. */
  readonly adminSessions?: Pick<AdminSessions, 'passes'>;
  /** Shared with API keys and sign-ins: guesses of one kind use up the tries for the others. */
  readonly attempts: Attempts;
  /**
   * Called at the 1st, 10th, 100th … wrong key of a minute, with the address of that one and how many all addresses
   * sent.
   */
  readonly onGuesses: (guesses: { readonly address: string; readonly failures: number }) => void;
  readonly now: () => number;
}

const MINUTE_MS = 60_000;

export function createAdminGate(options: AdminGateOptions): AdminGate {
  const { adminKey, adminKeys, log, networks, adminSessions, attempts, onGuesses, now } = options;
  const guard = createAdminGuard(adminKey);
  const requireInside = createNetworkGate(networks);
  let minute = 0;
  let failures = 0;
  const note = (address: string) => {
    const current = Math.floor(now() / MINUTE_MS);
    if (current !== minute) [minute, failures] = [current, 0];
    failures += 1;
    if (Number.isInteger(Math.log10(failures))) onGuesses({ address, failures });
  };

  const identify = async (headers: IncomingHttpHeaders): Promise<Administrator> => {
    try {
      guard(headers);
      // The gateway's own key counts also while the database does not answer.
      return ROOT;
    } catch (error) {
      const key = adminKeys && parseKey(bearerOf(headers.authorization ?? '') ?? '');
      const found = key?.kind === 'admin' ? await adminKeys!.find(key.hash) : null;
      if (found === null) throw error;
      return found;
    }
  };

  return async (request, reply) => {
    const { ip, headers, raw } = request;
    refuseRepeatedCredentials(raw.rawHeaders);
    requireInside(ip);
    // A request without any key guesses nothing.
    if (headers.authorization === undefined) {
      if (!adminSessions || !headers.cookie || !(await adminSessions.passes(request))) return guard(headers);
      noteAdministrator(raw, ROOT);
      void reply.header('cache-control', 'no-store');
      return;
    }
    let administrator: Administrator;
    try {
      administrator = await attempts.check(ip, () => identify(headers));
    } catch (error) {
      if (error instanceof GatewayError) note(ip);
      throw error;
    }
    const role = roleFor(request);
    if (!mayAct(administrator, role)) {
      await log?.note({ ...factsOf(request), actor: administrator.id, status: 403 });
      throw new GatewayError(
        'permission_denied',
        role === null
          ? 'This needs the admin key of the gateway itself (TOLLGATE_ADMIN_KEY)'
          : `This needs an admin key with the role ${role}`,
      );
    }
    noteAdministrator(raw, administrator);
  };
}

/**
 * Refuses addresses outside of the networks that operators come from. Throws GatewayError `permission_denied`. An empty
 * list lets all pass.
 */
export function createNetworkGate(networks: readonly string[]): (address: string) => void {
  const inside = networks.length === 0 ? null : createTrust(networks);
  return (address) => {
    if (inside && !inside(address))
      throw new GatewayError(
        'permission_denied',
        'The admin API is not open to your address: see server.admin_networks',
      );
  };
}

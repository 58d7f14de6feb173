import type { IncomingHttpHeaders } from 'node:http';
import { hash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createTrust } from '#security';
import { GatewayError } from '#errors';
import { parseKey } from '../api-key.ts';
import { type AdminKeys, type Administrator, mayAct, noteAdministrator, roleFor, ROOT } from './admin-keys.ts';
import { type AdminLog, factsOf } from './admin-log.ts';
import type { Attempts } from '../attempts.ts';
import { bearerOf, refuseRepeatedCredentials, unauthorized } from '../credential.ts';

type GateRequest = Pick<
  FastifyRequest,
  'ip' | 'headers' | 'raw' | 'method' | 'url' | 'protocol' | 'host' | 'routeOptions' | 'body'
>;

/**
 * Lets an operator's request pass if it has an admin key or the cookie of a session. It is the `onRequest` hook of
 * every route that takes the admin key. Rejects with GatewayError `unauthorized` for a wrong key or none,
 * `rate_limit_exceeded` after too many wrong keys from the address, `permission_denied` for an address outside of the
 * networks or a key without the role. A response to a cookie gets `cache-control: no-store`, which its route can
 * change.
 */
export type AdminGate = (request: GateRequest, reply: Pick<FastifyReply, 'header'>) => Promise<void>;

interface AdminGateOptions {
  /** TOLLGATE_ADMIN_KEY. null: only keys of `adminKeys` pass. */
  readonly adminKey: string | null;
  /** Keys with roles. Default: only the admin key counts. */
  readonly adminKeys?: Pick<AdminKeys, 'find'>;
  /** Records each request that is refused because the key lacks the role. */
  readonly log?: Pick<AdminLog, 'note'>;
  /** IP addresses and networks that requests may come from. Empty: all. */
  readonly networks: readonly string[];
  /** Sessions of operators' browsers. Default: only keys pass. */
  readonly adminSessions?: { passes(request: GateRequest): Promise<Administrator | null> };
  /**
   * Counts wrong admin keys only. If API keys counted too, strangers behind the operator's proxy could keep the
   * operator out. `adminKey` itself passes whatever was counted: its 32 characters or more cannot be
   * guessed, and its check needs no database.
   */
  readonly attempts: Attempts;
  /**
   * Called at the 1st, 10th, 100th … wrong key of a minute. `address` sent that key. `failures` counts the wrong keys
   * of all addresses.
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

  /** Throws or rejects with GatewayError `unauthorized` for a wrong key. */
  const identify = (headers: IncomingHttpHeaders, address: string): Administrator | Promise<Administrator> => {
    try {
      guard(headers);
      return ROOT;
    } catch (error) {
      return attempts.check(address, async () => {
        const key = adminKeys && parseKey(bearerOf(headers.authorization ?? '') ?? '');
        const record = key?.kind === 'admin' ? await adminKeys!.find(key.hash) : null;
        if (record === null) throw error;
        return record;
      });
    }
  };

  return async (request, reply) => {
    const { ip, headers, raw } = request;
    refuseRepeatedCredentials(raw.rawHeaders);
    requireInside(ip);
    let administrator: Administrator;
    // A request without a key is not a guess, so it does not count as a failed attempt.
    if (headers.authorization === undefined) {
      const known = adminSessions && headers.cookie ? await adminSessions.passes(request) : null;
      if (known === null) return guard(headers);
      administrator = known;
      void reply.header('cache-control', 'no-store');
    } else {
      try {
        administrator = await identify(headers, ip);
      } catch (error) {
        if (error instanceof GatewayError) note(ip);
        throw error;
      }
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
 * A check that throws GatewayError `permission_denied` for an address outside of `networks`. An empty list permits
 * every address.
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

/**
 * A check that accepts requests with `Authorization: Bearer <adminKey>` and throws GatewayError `unauthorized` for all
 * others. Digests are compared in constant time, so that timing reveals neither the key nor its length. null: no
 * request passes.
 */
export function createAdminGuard(adminKey: string | null): (headers: IncomingHttpHeaders) => void {
  const expected = adminKey === null ? null : digest(adminKey);
  return ({ authorization }) => {
    if (authorization === undefined) throw unauthorized('No admin key: send "Authorization: Bearer svc-admin-…"');
    const token = bearerOf(authorization);
    if (token === undefined || expected === null || !timingSafeEqual(digest(token), expected))
      throw unauthorized('Invalid admin key');
  };
}

const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

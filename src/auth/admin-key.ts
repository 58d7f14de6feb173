import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#wire';
import { bearerOf } from './credential.ts';

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

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } });
}

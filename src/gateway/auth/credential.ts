import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../errors.ts';
import { kindOf } from './api-key.ts';

const HOW = 'send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…"';

/**
 * The API key that a request presents, by `Authorization: Bearer` or `x-api-key`. Where both are there, the one that looks like a key of ours
 * counts, as clients fill the other with a dummy. Throws GatewayError `unauthorized` when there is none, or when they are two different keys.
 */
export function readCredential(headers: IncomingHttpHeaders): string {
  const { authorization } = headers;
  const other = headers['x-api-key'];
  const bearer = authorization === undefined ? undefined : bearerOf(authorization);
  if (other === undefined) {
    if (bearer !== undefined) return bearer;
    throw unauthorized(authorization === undefined ? `No API key: ${HOW}` : `The Authorization header is not of the form "Bearer <key>": ${HOW}`);
  }
  const key = String(other).trim();
  if (bearer === undefined || bearer === key || kindOf(bearer) === null) return key;
  if (kindOf(key) === null) return bearer;
  throw unauthorized('Authorization and x-api-key hold two different API keys: send one of them');
}

/** The token of a Bearer header, with the scheme in any case; undefined for another scheme. */
export function bearerOf(authorization: string): string | undefined {
  if (authorization.startsWith('Bearer ')) return authorization.slice(7).trim();
  return /^bearer +(.*)$/i.exec(authorization)?.[1]?.trim();
}

/**
 * Refuses a request that carries a credential header twice: Node keeps the first, a proxy before us may have judged by the last.
 * `rawHeaders` is IncomingMessage.rawHeaders, names and values by turns. Throws GatewayError `unauthorized`.
 */
export function refuseRepeatedCredentials(rawHeaders: readonly string[]): void {
  let bearers = 0;
  let keys = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 13 && name.toLowerCase() === 'authorization') bearers += 1;
    else if (name.length === 9 && name.toLowerCase() === 'x-api-key') keys += 1;
  }
  if (bearers > 1) throw unauthorized('The Authorization header was sent more than once: send it once');
  if (keys > 1) throw unauthorized('The x-api-key header was sent more than once: send it once');
}

function unauthorized(message: string): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': 'Bearer' } });
}

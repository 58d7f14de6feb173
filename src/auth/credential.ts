import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError, SIGN_IN_HEADERS } from '#wire';
import { kindOf } from './accounts/api-key.ts';
import { RUN_TOKEN_PREFIX } from './run-tokens.ts';

const HOW = 'send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…"';
const OR_SIGN_IN = `${HOW}, or sign in with a wallet: /api/v1/auth/nonce shows how`;

/**
 * The API key that a request presents, by `Authorization: Bearer` or `x-api-key`. If both are present, the one that
 * looks like a key of this gateway counts, because clients fill the other with a dummy. Throws GatewayError
 * `unauthorized` without a key, or with two different keys. `walletsToo`: the error also mentions sign-in with a
 * wallet.
 */
export function readCredential(headers: IncomingHttpHeaders, walletsToo = false): string {
  const { authorization } = headers;
  const other = headers['x-api-key'];
  const bearer = authorization === undefined ? undefined : bearerOf(authorization);
  if (other === undefined) {
    if (bearer !== undefined) return bearer;
    const what =
      authorization === undefined ? 'No API key' : 'The Authorization header is not of the form "Bearer <key>"';
    throw unauthorized(`${what}: ${walletsToo ? OR_SIGN_IN : HOW}`, walletsToo ? 'Bearer, SIWx' : 'Bearer');
  }
  const key = String(other).trim();
  if (bearer === undefined || bearer === key || !isOurs(bearer)) return key;
  if (!isOurs(key)) return bearer;
  throw unauthorized('Authorization and x-api-key contain two different API keys: send one of them');
}

const isOurs = (text: string): boolean => kindOf(text) !== null || text.startsWith(RUN_TOKEN_PREFIX);

/** The token of a Bearer header. The scheme is case-insensitive. undefined for another scheme. */
export function bearerOf(authorization: string): string | undefined {
  if (authorization.startsWith('Bearer ')) return authorization.slice(7).trim();
  return /^bearer +(.*)$/i.exec(authorization)?.[1]?.trim();
}

/**
 * Refuses a request that has a credential header twice, because Node keeps the first and a proxy in front may have
 * checked the last. `rawHeaders` is IncomingMessage.rawHeaders, in which names and values alternate. Throws
 * GatewayError `unauthorized`.
 */
export function refuseRepeatedCredentials(rawHeaders: readonly string[]): void {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // Comparing lengths first rules out most names cheaply.
    const same = CREDENTIALS_BY_LENGTH[name.length];
    if (same === undefined || name.toLowerCase() !== same.lower) continue;
    if ((seen & same.bit) !== 0) throw unauthorized(`The ${same.name} header was sent more than once: send it once`);
    seen |= same.bit;
  }
}

/** The names of the credential headers by their lengths, which are all different. */
const CREDENTIALS_BY_LENGTH: ({ readonly name: string; readonly lower: string; readonly bit: number } | undefined)[] =
  [];
for (const [index, name] of ['Authorization', 'x-api-key', ...SIGN_IN_HEADERS].entries()) {
  CREDENTIALS_BY_LENGTH[name.length] = { name, lower: name.toLowerCase(), bit: 1 << index };
}

function unauthorized(message: string, schemes = 'Bearer'): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': schemes } });
}

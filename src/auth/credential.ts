import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { SIGN_IN_HEADERS, createSealedTexts } from '#security';
import { kindOf } from './api-key.ts';

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

/** The error for a missing or wrong credential. `schemes` are those of `WWW-Authenticate` that would be right. */
export function unauthorized(message: string, schemes = 'Bearer'): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': schemes } });
}

/** The call that a run token is for. */
interface RunGrant {
  /** Id of the running call. */
  readonly parent: string;
  readonly account: string;
  /** Hash of the API key that the call was made with; null for a wallet or an access token. */
  readonly key: string | null;
}

/**
 * Credentials that the gateway gives to an agent with a call. With one, the agent makes calls in the consumer's name.
 * These calls are paid only from the lock of the agent's call, while the lock is held. Nothing is stored. The token is
 * encrypted, so that the agent does not learn the consumer's account from it.
 */
export interface RunTokens {
  issue(grant: RunGrant, expiresAt: number): string;
  /** null for a text that is not a token of this installation, was changed, or has expired. */
  open(text: string): RunGrant | null;
}

export const RUN_TOKEN_PREFIX = 'svc-run-v1-';
const TEXT_MAX = 1_024;
const PURPOSE = 'run token';

/** `secret`: 32 bytes that all gateways of one installation share. */
export function createRunTokens({ secret, now }: { readonly secret: Buffer; readonly now: () => number }): RunTokens {
  const texts = createSealedTexts(secret);
  return {
    issue: ({ parent, account, key }, expiresAt) =>
      RUN_TOKEN_PREFIX + texts.seal(PURPOSE, JSON.stringify([expiresAt, parent, account, key])),
    open(text) {
      if (!text.startsWith(RUN_TOKEN_PREFIX) || text.length > TEXT_MAX) return null;
      const opened = texts.open(PURPOSE, text.slice(RUN_TOKEN_PREFIX.length));
      if (opened === null) return null;
      const [expiresAt, parent, account, key] = JSON.parse(opened) as [number, string, string, string | null];
      return expiresAt > now() ? { parent, account, key } : null;
    },
  };
}

import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { createSealedTexts, CREDENTIAL_HEADERS, KEY_HEADERS, type SealSecret } from '#security';
import { kindOf } from './api-key.ts';

const HOW = 'send "Authorization: Bearer svc-sk-…" or "x-api-key: svc-sk-…"';

export const hasKeyHeader = (headers: IncomingHttpHeaders): boolean => KEY_HEADERS.some((name) => headers[name]);
const OR_SIGN_IN = `${HOW}, or sign in with a wallet: /api/v1/auth/nonce shows how`;

/**
 * The API key that a request presents, by `Authorization: Bearer`, `x-api-key` or `x-goog-api-key`. If several are
 * present, the one that looks like a key of this gateway counts, because clients fill the others with a dummy. Throws
 * GatewayError `unauthorized` without a key, or with two different keys. `walletsToo`: the error also mentions sign-in
 * with a wallet.
 */
export function readCredential(headers: IncomingHttpHeaders, walletsToo = false): string {
  const { authorization } = headers;
  const bearer = authorization === undefined ? undefined : bearerOf(authorization);
  const googles = headers['x-goog-api-key'];
  const key =
    googles === undefined
      ? keyIn(headers['x-api-key'])
      : oursOf(keyIn(googles), keyIn(headers['x-api-key']), 'x-goog-api-key and x-api-key');
  const token = oursOf(bearer, key, `Authorization and ${googles === undefined ? 'x-api-key' : 'x-goog-api-key'}`);
  if (token !== undefined) return token;
  const what =
    authorization === undefined ? 'No API key' : 'The Authorization header is not of the form "Bearer <key>"';
  throw unauthorized(`${what}: ${walletsToo ? OR_SIGN_IN : HOW}`, walletsToo ? 'Bearer, SIWx' : 'Bearer');
}

const keyIn = (header: string | string[] | undefined): string | undefined =>
  header === undefined ? undefined : String(header).trim();

/** The one of two texts that looks like a key of this gateway; the second if none does. Throws if both do. */
function oursOf(one: string | undefined, other: string | undefined, headers: string): string | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one === other || !isOurs(one)) return other;
  if (!isOurs(other)) return one;
  throw unauthorized(`${headers} contain two different API keys: send one of them`);
}

const isOurs = (text: string): boolean =>
  kindOf(text) !== null || text.startsWith(RUN_TOKEN_PREFIX) || text.startsWith(CLIENT_SECRET_PREFIX);

/** The token of a Bearer header. The scheme is case-insensitive. undefined for another scheme. */
export function bearerOf(authorization: string): string | undefined {
  return /^bearer /i.test(authorization) ? authorization.slice(7).trim() : undefined;
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
    const similar = CREDENTIALS_BY_LENGTH[name.length];
    if (similar === undefined) continue;
    const lower = name.toLowerCase();
    for (const one of similar) {
      if (one.lower !== lower) continue;
      if ((seen & one.bit) !== 0) throw unauthorized(`The ${one.name} header was sent more than once: send it once`);
      seen |= one.bit;
    }
  }
}

const CREDENTIALS_BY_LENGTH: ({ readonly name: string; readonly lower: string; readonly bit: number }[] | undefined)[] =
  [];
for (const [index, lower] of CREDENTIAL_HEADERS.entries()) {
  const name = lower === 'authorization' ? 'Authorization' : lower;
  (CREDENTIALS_BY_LENGTH[name.length] ??= []).push({ name, lower, bit: 1 << index });
}

/** The error for a missing or wrong credential. `schemes` are those of `WWW-Authenticate` that would be right. */
export function unauthorized(message: string, schemes = 'Bearer'): GatewayError {
  return new GatewayError('unauthorized', message, { headers: { 'www-authenticate': schemes } });
}

/** The call that a run token is for. */
interface RunGrant {
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
/** That of OpenAI's client secrets: its SDK lets browsers use keys with this prefix alone. */
export const CLIENT_SECRET_PREFIX = 'ek_';
const TEXT_MAX = 1_024;
const PURPOSE = 'run token';

/** `secret`: 32 bytes that all gateways of one installation share. */
export function createRunTokens({
  secret,
  now,
}: {
  readonly secret: SealSecret;
  readonly now: () => number;
}): RunTokens {
  const texts = createSealedTexts(secret);
  return {
    issue: ({ parent, account, key }, expiresAt) =>
      RUN_TOKEN_PREFIX + texts.seal(PURPOSE, JSON.stringify([expiresAt, parent, account, key])),
    open(text) {
      if (!text.startsWith(RUN_TOKEN_PREFIX) || text.length > TEXT_MAX) return null;
      const plainText = texts.open(PURPOSE, text.slice(RUN_TOKEN_PREFIX.length));
      if (plainText === null) return null;
      const [expiresAt, parent, account, key] = JSON.parse(plainText) as [number, string, string, string | null];
      return expiresAt > now() ? { parent, account, key } : null;
    },
  };
}

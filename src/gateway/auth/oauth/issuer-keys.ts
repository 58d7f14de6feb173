import type { JWTVerifyGetKey } from 'jose';
import { GatewayError } from '#errors';
import { isLoopback, isIssuerUrl } from '#security';
import { BOUNDS, fetchText, parseForeign } from '#wire';

export interface IssuerKeysOptions {
  readonly issuer: string;
  /** null: read from the issuer's metadata at every refresh. */
  readonly jwksUrl: string | null;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly onError: (error: unknown) => void;
  /** Timeout for all requests of one refresh together. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
const BYTES_MAX = BOUNDS.issuer.bytesMax;
const KEYS_MAX = 100;
/** Keys of this age are fetched again, so that a key that the issuer withdrew is not accepted for much longer. */
const FRESH_MS = 10 * 60_000;
/** How long keys are used while the issuer cannot be reached. */
const KEEP_MS = 60 * 60_000;
/** Minimum time between two refreshes, because anybody can send tokens with unknown key ids. */
const REFRESH_EVERY_MS = 60_000;
/** Minimum time between two refreshes while no usable keys are known. */
const RETRY_EVERY_MS = 5_000;

/**
 * A lookup of the issuer's public keys, which are fetched when the first token needs one. The lookup resolves with the
 * key that a token's header names. Rejects with an error of jose if the issuer does not have that key, and with
 * GatewayError `service_unavailable` if the issuer has never been reached, or not for an hour.
 */
export async function createIssuerKeys({
  issuer,
  jwksUrl,
  elapsed,
  onError,
  timeoutMs = TIMEOUT_MS,
}: IssuerKeysOptions): Promise<JWTVerifyGetKey> {
  const { createLocalJWKSet, errors } = await import('jose');
  let current: { readonly find: JWTVerifyGetKey; readonly at: number } | null = null;
  let triedAt: number | null = null;
  let running: Promise<void> | null = null;

  const load = async (at: number) => {
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const url = jwksUrl ?? (await findJwksUrl(issuer, { bytesMax: BYTES_MAX, signal }));
      const set = await fetchJson(url, { bytesMax: BYTES_MAX, signal });
      const { keys } = (set ?? {}) as { readonly keys?: unknown };
      if (!Array.isArray(keys) || keys.length > KEYS_MAX)
        throw new Error(`${url} has no list of at most ${KEYS_MAX} keys`);
      current = { find: createLocalJWKSet({ keys: keys as [] }), at };
    } catch (error) {
      onError(error);
    } finally {
      running = null;
    }
  };

  /** Fetches the keys, or waits for a running fetch. null if it is too early for another fetch. */
  const refresh = (everyMs: number): Promise<void> | null => {
    if (running) return running;
    const at = elapsed();
    const since = triedAt === null ? Number.POSITIVE_INFINITY : at - triedAt;
    if (since < everyMs) return null;
    triedAt = at;
    return (running = load(at));
  };

  return async (header, token) => {
    const isUsable = () => current !== null && elapsed() - current.at < KEEP_MS;
    if (!isUsable()) await refresh(RETRY_EVERY_MS);
    // Old keys stay in use while new ones are fetched in the background.
    else if (elapsed() - current!.at >= FRESH_MS) void refresh(REFRESH_EVERY_MS);
    if (!isUsable()) {
      const message =
        'The issuer of access tokens cannot be asked for its keys at the moment: retry shortly, or use an API key';
      throw new GatewayError('service_unavailable', message, { retryAfterS: RETRY_EVERY_MS / 1_000 });
    }
    try {
      return await current!.find(header, token);
    } catch (error) {
      const later = error instanceof errors.JWKSNoMatchingKey ? refresh(REFRESH_EVERY_MS) : null;
      if (later === null) throw error;
      await later;
      return current!.find(header, token);
    }
  };
}

/**
 * The URL of an issuer's keys, from its metadata by RFC 8414 or OpenID Connect. Rejects with an Error that names each
 * URL that was tried, with the reason why it failed.
 */
async function findJwksUrl(issuer: string, options: FetchJsonOptions): Promise<string> {
  const failures: string[] = [];
  for (const url of metadataUrls(issuer)) {
    try {
      return jwksUrlOf(await fetchJson(url, options), issuer);
    } catch (error) {
      failures.push(`${url}: ${(error as Error).message}`);
    }
  }
  throw new Error(`The address of the issuer's keys was not found in its metadata: ${failures.join('; ')}`);
}

/** The well-known segment comes before the issuer's path (RFC 8414) or after it (OpenID Connect). */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  return path === '' ? urls : [...urls, `${origin}/.well-known/openid-configuration${path}`];
}

/**
 * The URL of the keys in the metadata of an issuer. Throws an Error with the reason if the metadata is not acceptable.
 */
export function jwksUrlOf(metadata: unknown, issuer: string): string {
  const { issuer: issuerName, jwks_uri: url } = (metadata ?? {}) as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  // With the metadata of another issuer, that issuer's keys would verify this issuer's tokens.
  if (issuerName !== issuer) throw new Error('names another issuer');
  if (typeof url !== 'string' || !isIssuerUrl(url)) throw new Error('has no jwks_uri with https');
  // Metadata from the network must not direct the gateway to a service on its own machine.
  if (isLoopback(new URL(url).hostname) && !isLoopback(new URL(issuer).hostname))
    throw new Error('has a jwks_uri that leads to this machine');
  return url;
}

interface FetchJsonOptions {
  /** The limit for the body in bytes, after decompression. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/**
 * Fetches JSON. Follows no redirect. Rejects if the status is not 200, if the body is too large or not JSON, or when
 * the signal aborts.
 */
async function fetchJson(url: string, { bytesMax, signal }: FetchJsonOptions): Promise<unknown> {
  const { status, text } = await fetchText(url, { bytesMax, signal });
  if (status !== 200) throw new Error(`answers ${status}`);
  return parseForeign(text, BOUNDS.issuer);
}

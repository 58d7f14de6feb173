import type { JWTVerifyGetKey } from 'jose';
import { GatewayError } from '#wire';
import { fetchJson } from './fetch-json.ts';
import { findJwksUrl } from './find-jwks-url.ts';

export interface IssuerKeysOptions {
  readonly issuer: string;
  /** null: from the issuer's metadata, at every refresh. */
  readonly jwksUrl: string | null;
  /** Milliseconds that only go on. */
  readonly now: () => number;
  /** Told why keys could not be fetched. */
  readonly onError: (error: unknown) => void;
  /** For all requests of one refresh together. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;
const BYTES_MAX = 256 * 1024;
const KEYS_MAX = 100;
/** Then they are fetched anew, so that a key that the issuer has withdrawn is not taken for longer. */
const FRESH_MS = 10 * 60_000;
/** How long keys stand while the issuer cannot be asked. */
const KEEP_MS = 60 * 60_000;
/** Between two refreshes, whatever tokens name: anybody can send one with a key id that does not exist. */
const REFRESH_EVERY_MS = 60_000;
/** The same while there are no keys at all. */
const RETRY_EVERY_MS = 5_000;

/**
 * The public keys of an issuer, fetched when the first token needs one. Resolves with the one that a token's header
 * names, rejects with an error of jose where there is none, and with GatewayError `service_unavailable` while the
 * issuer has never been reached, or not for an hour.
 */
export async function createIssuerKeys({
  issuer,
  jwksUrl,
  now,
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

  /** Fetches the keys, or waits for who does; null where it is too early to ask again. */
  const refresh = (everyMs: number): Promise<void> | null => {
    if (running) return running;
    const at = now();
    const since = triedAt === null ? Number.POSITIVE_INFINITY : at - triedAt;
    if (since < everyMs) return null;
    triedAt = at;
    return (running = load(at));
  };

  return async (header, token) => {
    const isUsable = () => current !== null && now() - current.at < KEEP_MS;
    if (!isUsable()) await refresh(RETRY_EVERY_MS);
    // Nobody waits for keys that still stand.
    else if (now() - current!.at >= FRESH_MS) void refresh(REFRESH_EVERY_MS);
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

import type { Config } from '#config';
import { createOwnOrigin } from '#security';
import { createAttempts, createProtectedResource } from '#auth';
import { issuerKey, jwkOf, mint, startIssuer, type Issuer, type IssuerKey, type Json } from './issuer.ts';

export const START = Date.parse('2026-03-04T05:06:07Z');
export const PUBLIC_URL = 'https://gate.example';
export const ADDRESS = '192.0.2.1';

export interface TokenWorldOptions {
  readonly oauth?: Partial<Config['oauth']>;
  readonly publicUrl?: string | null;
  readonly domains?: readonly string[];
  readonly failuresPerMinute?: number;
  readonly issuer?: Issuer;
  readonly timeoutMs?: number;
}

/** A gateway's access tokens against an issuer on a real socket with one key, `first`. */
export async function openTokens(options: TokenWorldOptions = {}) {
  const clock = { now: START };
  const now = () => clock.now;
  const issuer = options.issuer ?? (await startIssuer());
  const first = issuerKey('first');
  issuer.keys.push(jwkOf(first));
  const failures: unknown[] = [];
  const attempts = createAttempts({ perMinute: options.failuresPerMinute ?? 1_000, now });
  const config = {
    publicUrl: options.publicUrl === undefined ? PUBLIC_URL : options.publicUrl,
    signIn: { domains: options.domains ?? [], lifetimeMsMax: 3_600_000, skewMs: 30_000, failuresPerMinute: 1_000 },
    oauth: {
      issuer: issuer.url,
      audience: null,
      sharedAudience: false,
      scopes: [],
      requiredScope: null,
      jwksUrl: null,
      ...options.oauth,
    },
  };
  const resource = await createProtectedResource({
    config,
    ownOrigin: createOwnOrigin(config),
    attempts,
    now,
    elapsed: now,
    onError: (error) => failures.push(error),
    ...(options.timeoutMs ? { timeoutMs: options.timeoutMs } : {}),
  });
  const tokens = resource.accessTokens!;
  /** Claims of a good token. */
  const claims = (changes: Json = {}): Json => ({
    iss: issuer.url,
    sub: 'alice',
    aud: `${PUBLIC_URL}/mcp`,
    iat: START / 1_000,
    exp: START / 1_000 + 600,
    ...changes,
  });
  return {
    clock,
    now,
    issuer,
    first,
    config,
    attempts,
    resource,
    tokens,
    /** Why keys could not be fetched. */
    failures,
    claims,
    token: (changes: Json = {}, header: Json = {}, key: IssuerKey = first) => mint(key, claims(changes), header),
    /** As a gateway does: from memory, else anew. Rejects also for what is no token. */
    enter: async (token: string, address = ADDRESS, path = '/mcp') => {
      const caller = tokens.known(token, path) ?? (await tokens.verify(token, path, address));
      if (caller === null) throw new Error('no token');
      return caller;
    },
  };
}

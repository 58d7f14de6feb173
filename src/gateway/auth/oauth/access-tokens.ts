import type { JWTPayload } from 'jose';
import { GatewayError } from '#errors';
import type { Config } from '#config';
import { type Caller, subjectAccount } from '#accounts';
import type { Attempts } from '../attempts.ts';
import { createVerified } from '../siwx/verified.ts';
import { createIssuerKeys, type IssuerKeysOptions } from './issuer-keys.ts';
import type { Resources } from './resources.ts';

/** Access tokens (RFC 9068) of the one configured issuer. */
export interface AccessTokens {
  /**
   * The caller of a token that was verified in the last minute and is still valid; null otherwise. `path`: see verify.
   * Throws GatewayError `unauthorized` if the token is for another resource.
   */
  known(token: string, path: string | null): Caller | null;
  /**
   * The caller of a token. null for a text that is not a JWT. `path`: of the request, null if it is not a resource.
   * `address` is the client's. Rejects with GatewayError: `unauthorized` with the reason, `permission_denied` without
   * the required scope, `rate_limit_exceeded` after too many failures from the address, `service_unavailable` without
   * the issuer's keys.
   */
  verify(token: string, path: string | null, address: string): Promise<Caller> | null;
}

export interface AccessTokensOptions extends IssuerKeysOptions, Pick<Config['oauth'], 'requiredScope'> {
  readonly resources: Pick<Resources, 'isAudience' | 'isFor' | 'agentsOf'>;
  readonly skewMs: number;
  readonly attempts: Attempts;
  readonly now: () => number;
}

/** Only asymmetric algorithms, whose private key only the issuer has. With an HMAC every verifier could sign tokens. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA'];
/**
 * Many issuers do not send `at+jwt`. Other types, such as logout tokens and proofs of possession, are not access
 * tokens.
 */
const TYPES: ReadonlySet<unknown> = new Set(['', 'jwt', 'at+jwt', 'application/at+jwt']);
const FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const LENGTH_MAX = 8 * 1024;
const SHOWN_MAX = 3;

/**
 * How long a verified token is accepted without a new check. A check of the signature costs 50 to 100 µs. The time is
 * short because the issuer may withdraw the key.
 */
const VERIFIED_MS = 60_000;
const VERIFIED_MAX = 10_000;
const VERIFIED_BYTES_MAX = 16 * 1024 * 1024;

interface VerifiedToken {
  readonly caller: Caller;
  readonly audiences: readonly string[];
}

/**
 * Resolves when everything for verification is loaded, so that the first token does not block other requests with an
 * import.
 */
export async function createAccessTokens(options: AccessTokensOptions): Promise<AccessTokens> {
  const { issuer, resources, requiredScope, skewMs, attempts, now } = options;
  const { decodeJwt, decodeProtectedHeader, errors, jwtVerify } = await import('jose');
  const keyOf = await createIssuerKeys(options);
  const verified = createVerified<VerifiedToken>({ countMax: VERIFIED_MAX, bytesMax: VERIFIED_BYTES_MAX });
  const running = new Map<string, Promise<VerifiedToken>>();

  /**
   * Refuses wrong algorithms, types and issuers before the costly check. Like a mistyped key, such a token does not
   * count as a failed attempt.
   */
  const precheck = ({ alg, typ = '' }: Readonly<Record<string, unknown>>, claims: JWTPayload) => {
    if (!ALGORITHMS.some((one) => one === alg)) throw tokenError(`is not signed with one of ${ALGORITHMS.join(', ')}`);
    if (typeof typ !== 'string' || !TYPES.has(typ.toLowerCase()))
      throw tokenError('is of another type than an access token');
    if (claims.iss !== issuer) throw tokenError(`is not one of ${issuer}`);
  };

  const verifySignature = async (token: string, at: number): Promise<JWTPayload> => {
    try {
      const rules = { algorithms: ALGORITHMS, issuer, requiredClaims: ['exp', 'aud', 'sub'] };
      return (await jwtVerify(token, keyOf, { ...rules, clockTolerance: skewMs / 1_000, currentDate: new Date(at) }))
        .payload;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      if (error instanceof errors.JWTExpired) throw tokenError('has expired');
      if (error instanceof errors.JWTClaimValidationFailed)
        throw tokenError(
          error.claim === 'nbf' && error.reason === 'check_failed'
            ? 'is not valid yet'
            : `has no valid claim "${error.claim}"`,
        );
      if (error instanceof errors.JWSSignatureVerificationFailed)
        throw tokenError('was not signed by its issuer, or was changed');
      if (error instanceof errors.JWKSNoMatchingKey) throw tokenError('names a key that its issuer does not have');
      throw tokenError('cannot be verified');
    }
  };

  const check = async (token: string, at: number): Promise<VerifiedToken> => {
    const claims = await verifySignature(token, at);
    // A token that is bound to a key needs a proof of possession of that key. This gateway cannot check the proof, so
    // the token might be stolen.
    if (claims['cnf'] !== undefined) throw tokenError('is bound to a key of its client, which is not supported');
    const audiences = [claims.aud ?? []].flat();
    if (!audiences.some(resources.isAudience))
      throw tokenError('is not for this gateway: ask for one whose audience is its address');
    const { sub: subject } = claims;
    if (typeof subject !== 'string' || subject === '' || !subject.isWellFormed())
      throw tokenError('has no valid claim "sub"');
    if (requiredScope !== null && !scopesOf(claims).includes(requiredScope)) throw scopeError(requiredScope);
    const caller: Caller = { account: subjectAccount(issuer, subject), key: null, wallet: null };
    const known: VerifiedToken = { caller, audiences };
    verified.put(token, known, { from: at, until: Math.min(at + VERIFIED_MS, claims.exp! * 1_000 + skewMs - 1) });
    return known;
  };

  /** A token for one resource is not accepted at another one, so its user knows what a client can do with it. */
  const callerAt = ({ caller, audiences }: VerifiedToken, path: string | null): Caller => {
    const right = audiences.filter((audience) => resources.isFor(audience, path));
    const agents = resources.agentsOf(right);
    if (right.length > 0) return agents === null ? caller : { ...caller, agents };
    const own = audiences.filter(resources.isAudience).slice(0, SHOWN_MAX).join(' and ');
    throw tokenError(`is only for ${own}: ask for a token for this address`);
  };

  return {
    known(token, path) {
      const known = verified.get(token, now());
      return known && callerAt(known, path);
    },

    verify(token, path, address) {
      if (token.length > LENGTH_MAX || !FORM.test(token)) return null;
      const before = running.get(token);
      if (before) return before.then((known) => callerAt(known, path));
      let decoded: readonly [Readonly<Record<string, unknown>>, JWTPayload];
      try {
        decoded = [{ ...decodeProtectedHeader(token) }, decodeJwt(token)];
      } catch {
        return null;
      }
      const result = (async () => {
        precheck(...decoded);
        return attempts.check(address, () => check(token, now()));
      })().finally(() => running.delete(token));
      running.set(token, result);
      return result.then((known) => callerAt(known, path));
    },
  };
}

/** RFC 9068 has `scope`. Some issuers send a list, `scp`, instead. */
function scopesOf({ scope, scp }: JWTPayload): readonly unknown[] {
  return [scope ?? scp ?? []].flat().flatMap((text: unknown) => (typeof text === 'string' ? text.split(' ') : []));
}

/** The error for an invalid access token. `why` completes the sentence "it …". */
export function tokenError(why: string): GatewayError {
  return new GatewayError('unauthorized', `Invalid access token: it ${why}`, {
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
  });
}

function scopeError(scope: string): GatewayError {
  return new GatewayError(
    'permission_denied',
    `The access token does not have the scope ${scope}: ask for one that has it`,
    {
      headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    },
  );
}

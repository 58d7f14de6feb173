import { createHash } from 'node:crypto';
import { GatewayError } from '#errors';
import type { Resources } from './resources.ts';

/** A request that a proof of possession (RFC 9449) has to fit. */
interface ProvenRequest {
  readonly method: string;
  /** The path of the request, without its query. */
  readonly path: string;
  readonly token: string;
  /** The thumbprint of the key that the token is bound to. */
  readonly jkt: string;
}

export interface DpopProofsOptions {
  readonly resources: Pick<Resources, 'isOrigin'>;
  /** Whether an id is used for the first time, at any gateway of the database. It is remembered until `until`. */
  readonly useOnce: (id: string, until: number) => Promise<boolean>;
  readonly now: () => number;
}

/** Checks a proof. Rejects with GatewayError `unauthorized` with the reason. */
export type CheckDpopProof = (proof: string, request: ProvenRequest) => Promise<void>;

/** Only asymmetric algorithms, which the library accepts at the token endpoint too. */
export const DPOP_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'RS256', 'PS256'] as const;
const LENGTH_MAX = 4 * 1024;
/** How old a proof may be, and how far its client's clock may be ahead. */
const WINDOW_MS = 60_000;

export function createDpopProofs({ resources, useOnce, now }: DpopProofsOptions): CheckDpopProof {
  const isHere = (htu: unknown, path: string): boolean => {
    const url = typeof htu === 'string' ? URL.parse(htu) : null;
    return url !== null && resources.isOrigin(url.origin) && url.pathname === path;
  };

  return async (proof, { method, path, token, jkt }) => {
    if (proof.length > LENGTH_MAX) throw proofError('is too long');
    // Most gateways never see a proof.
    const { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } = await import('jose');
    let verified;
    try {
      verified = await jwtVerify(proof, EmbeddedJWK, {
        algorithms: [...DPOP_ALGORITHMS],
        typ: 'dpop+jwt',
        currentDate: new Date(now()),
      });
    } catch {
      throw proofError('cannot be verified');
    }
    const { payload, protectedHeader } = verified;
    const { jti, iat, htm, htu, ath } = payload;
    if (typeof jti !== 'string' || jti === '' || typeof iat !== 'number') throw proofError('has no jti or no iat');
    if (htm !== method || !isHere(htu, path)) throw proofError('is for another request');
    if (Math.abs(now() - iat * 1_000) > WINDOW_MS) throw proofError('is not recent');
    if (ath !== createHash('sha256').update(token).digest('base64url')) throw proofError('is for another token');
    if ((await calculateJwkThumbprint(protectedHeader.jwk!)) !== jkt)
      throw proofError('was made with another key than the token is bound to');
    const id = createHash('sha256').update(`${jkt} ${jti}`).digest('base64url');
    if (!(await useOnce(`dpop ${id}`, iat * 1_000 + 2 * WINDOW_MS))) throw proofError('was used before');
  };
}

/** The error for an invalid proof. `why` completes the sentence "it …". */
export function proofError(why: string): GatewayError {
  return new GatewayError('unauthorized', `Invalid DPoP proof: it ${why}`, {
    headers: { 'www-authenticate': `DPoP error="invalid_dpop_proof", algs="${DPOP_ALGORITHMS.join(' ')}"` },
  });
}

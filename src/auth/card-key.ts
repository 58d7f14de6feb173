import { createECDH, createHash, createPrivateKey, sign, type KeyObject } from 'node:crypto';
import type { Identity } from './identity.ts';

/** The P-256 key that agent cards are signed with (JWS ES256). */
export interface CardKey {
  /** RFC 7638 thumbprint of the public key. */
  readonly kid: string;
  readonly alg: 'ES256';
  /** The public key as published in `/.well-known/jwks.json`. */
  readonly jwk: {
    readonly kty: 'EC';
    readonly crv: 'P-256';
    readonly x: string;
    readonly y: string;
    readonly kid: string;
    readonly use: 'sig';
    readonly alg: 'ES256';
  };
  /** R and S, 32 bytes each (RFC 7518 section 3.4). */
  sign(input: Uint8Array): Uint8Array;
}

/**
 * The card key of an identity. The same seed always gives the same key. The algorithm is ES256 because verifiers in all
 * languages support it. It is a separate key because no key has two uses.
 */
export function createCardKey(identity: Pick<Identity, 'secret'>): CardKey {
  const { privateKey, x, y } = deriveKey(identity.secret('agent cards'));
  const kid = createHash('sha256').update(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`).digest('base64url');
  return {
    kid,
    alg: 'ES256',
    jwk: { kty: 'EC', crv: 'P-256', x, y, kid, use: 'sig', alg: 'ES256' },
    sign: (input) => sign('sha256', input, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  };
}

/** One in 2^32 secrets is not a valid scalar of the curve. Its hash is tried instead. */
function deriveKey(secret: Buffer): { readonly privateKey: KeyObject; readonly x: string; readonly y: string } {
  const curve = createECDH('prime256v1');
  for (;;) {
    try {
      curve.setPrivateKey(secret);
      break;
    } catch {
      secret = createHash('sha256').update(secret).digest();
    }
  }
  const point = curve.getPublicKey();
  const x = point.subarray(1, 33).toString('base64url');
  const y = point.subarray(33).toString('base64url');
  const privateKey = createPrivateKey({
    format: 'jwk',
    key: { kty: 'EC', crv: 'P-256', x, y, d: secret.toString('base64url') },
  });
  return { privateKey, x, y };
}

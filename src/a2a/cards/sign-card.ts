import { canonicalJson } from './canonical-json.ts';

/** Signs cards with a key that it does not reveal. */
export interface SignBytes {
  readonly kid: string;
  readonly alg: 'ES256' | 'EdDSA';
  /** URL of the public key; null: `/.well-known/jwks.json` of the origin in the card. */
  readonly jku: string | null;
  /**
   * Returns the signature in the form of JWS (RFC 7518 section 3.4, RFC 8037 section 3.1): for ES256 R and S, 32 bytes
   * each.
   */
  sign(input: Uint8Array): Uint8Array;
}

/** A JWS in flattened form without its payload (A2A 1.0 section 8.4.2). */
interface CardSignature {
  readonly protected: string;
  readonly signature: string;
}

/** Path of a gateway's public keys. */
const JWKS_PATH = '/.well-known/jwks.json';

/**
 * The signature of a card (A2A 1.0 section 8.4) over its canonical JSON without `signatures`. The card must not contain
 * empty texts, lists or objects, or explicit defaults: verifiers remove them before they check, each in a different
 * way. `origin`: the origin that the card names.
 */
export function signatureOf(card: object, key: SignBytes, origin: string): CardSignature {
  const { signatures: _, ...content } = card as { readonly signatures?: unknown };
  const header = encode(
    JSON.stringify({ alg: key.alg, typ: 'JOSE', kid: key.kid, jku: key.jku ?? origin + JWKS_PATH }),
  );
  const signed = `${header}.${encode(canonicalJson(content))}`;
  return { protected: header, signature: Buffer.from(key.sign(Buffer.from(signed))).toString('base64url') };
}

/**
 * Signs a card. `parts` are versions of the card with fewer members. Their signatures come first, for readers that know
 * only those members. Earlier `signatures` are replaced.
 */
export function signCard<T extends object>(
  card: T,
  key: SignBytes,
  origin: string,
  parts: readonly object[] = [],
): T & { readonly signatures: readonly CardSignature[] } {
  return { ...card, signatures: [...parts, card].map((content) => signatureOf(content, key, origin)) };
}

const encode = (text: string) => Buffer.from(text).toString('base64url');

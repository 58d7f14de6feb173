import { canonicalJson } from './canonical-json.ts';

/** A key that cards are signed with, without the key. */
export interface SignBytes {
  readonly kid: string;
  readonly alg: 'ES256' | 'EdDSA';
  /** Address of the public key; null: `/.well-known/jwks.json` of the address that the card is for. */
  readonly jku: string | null;
  /** The signature as JWS has it (RFC 7518 section 3.4, RFC 8037 section 3.1): for ES256 R and S, 32 bytes each. */
  sign(input: Uint8Array): Uint8Array;
}

/** One JWS in flattened form with its payload left out (A2A 1.0 section 8.4.2). */
interface CardSignature {
  readonly protected: string;
  readonly signature: string;
}

/** Path of a gateway's public keys. */
const JWKS_PATH = '/.well-known/jwks.json';

/**
 * The signature of a card (A2A 1.0 section 8.4): over its canonical JSON without `signatures`. The card must hold
 * no empty texts, lists and objects and no explicit defaults, which verifiers leave out before they look, each in
 * its own way. `origin`: the address that the card is for.
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
 * Signs a card. The signature of `parts`, which has fewer members, comes first: readers that know only those verify
 * it. Earlier `signatures` are replaced.
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

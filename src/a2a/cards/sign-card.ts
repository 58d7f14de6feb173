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

const JWKS_PATH = '/.well-known/jwks.json';

/**
 * The signature of a card (A2A 1.0 section 8.4) over its canonical JSON without `signatures`. The card must not contain
 * empty texts, lists or objects, or explicit defaults: verifiers remove them before they check, each in a different
 * way. `origin`: the origin that the card names.
 */
function signatureOf(card: object, key: SignBytes, origin: string): CardSignature {
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

/**
 * Writes a JSON value by the JSON Canonicalization Scheme (RFC 8785): members sorted by their UTF-16 code units, no
 * white space, numbers and strings as in ECMAScript. Throws TypeError for a value that is not I-JSON: lone surrogates,
 * numbers that are not finite, values that JSON cannot write.
 */
export function canonicalJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new TypeError('A text with a lone surrogate has no canonical form');
      return JSON.stringify(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical form`);
      return JSON.stringify(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object': {
      if (value === null) return 'null';
      if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
      const members = value as Readonly<Record<string, unknown>>;
      const written = Object.keys(members)
        .toSorted(byCodeUnits)
        .filter((key) => members[key] !== undefined)
        .map((key) => `${canonicalJson(key)}:${canonicalJson(members[key])}`);
      return `{${written.join(',')}}`;
    }
    default:
      throw new TypeError(`A ${typeof value} has no canonical form`);
  }
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

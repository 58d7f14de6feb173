/** The content of a receipt. Amounts are micro-USD as text. */
interface ReceiptFacts {
  readonly id: string;
  readonly account: string;
  readonly provider: string;
  readonly primitive: string;
  /** Absent without tags. */
  readonly tags?: Readonly<Record<string, string>>;
  readonly lock: string;
  readonly charged: string;
  readonly fee: string;
  /** Epoch milliseconds. */
  readonly time: number;
  readonly usage: Readonly<Record<string, unknown>>;
}

/** The result of checking a receipt. `reason` says why it is forged or could not be checked. */
export type Verdict =
  | { readonly state: 'genuine'; readonly facts: ReceiptFacts; readonly kid: string }
  | { readonly state: 'forged' | 'unjudged'; readonly reason: string };

interface KeySet {
  readonly keys: readonly (JsonWebKey & { readonly kid?: string })[];
}

const BASE64URL = { alphabet: 'base64url' } as const;
const jsonOf = (part: string): Readonly<Record<string, unknown>> =>
  JSON.parse(new TextDecoder().decode(Uint8Array.fromBase64(part, BASE64URL))) as Record<string, unknown>;
const forged = (reason: string): Verdict => ({ state: 'forged', reason });

/**
 * Checks the signature of a receipt (a compact JWS) with the keys that the gateway publishes. The browser computes this
 * itself.
 */
export async function verifyReceipt(receipt: string): Promise<Verdict> {
  const [head, body, signature, ...more] = receipt.trim().split('.');
  if (head === undefined || body === undefined || signature === undefined || more.length > 0)
    return forged('This is no receipt: it does not have three parts with dots between.');
  let header: Readonly<Record<string, unknown>>;
  let facts: ReceiptFacts;
  let signed: Uint8Array<ArrayBuffer>;
  try {
    header = jsonOf(head);
    facts = jsonOf(body) as unknown as ReceiptFacts;
    signed = Uint8Array.fromBase64(signature, BASE64URL);
  } catch {
    return forged('This is no receipt: it cannot be read.');
  }
  if (header['alg'] !== 'EdDSA' || typeof header['kid'] !== 'string')
    return forged('It is not signed in the way of this gateway.');
  // The type claims that it always exists.
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  if (subtle === undefined)
    return { state: 'unjudged', reason: 'Browsers check signatures only over https and on this machine.' };
  const { kid } = header;
  const { keys } = (await (await fetch('/.well-known/jwks.json')).json()) as KeySet;
  const known = keys.find((key) => key.kid === kid && key.crv === 'Ed25519');
  if (known === undefined) return forged('It is signed by a key that this gateway does not publish.');
  try {
    const { kty, crv, x } = known;
    const key = await subtle.importKey('jwk', { kty: kty!, crv: crv!, x: x! }, 'Ed25519', false, ['verify']);
    const text = new TextEncoder().encode(`${head}.${body}`);
    if (!(await subtle.verify('Ed25519', key, signed, text)))
      return forged('The signature does not fit the content: one of them was changed.');
  } catch {
    return { state: 'unjudged', reason: 'This browser cannot check signatures of this kind (Ed25519).' };
  }
  return { state: 'genuine', facts, kid };
}

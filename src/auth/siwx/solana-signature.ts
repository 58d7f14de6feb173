import { createPublicKey, verify } from 'node:crypto';
import bs58 from 'bs58';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/**
 * 32 bytes are at most 44 base58 digits, and 64 bytes at most 88. The length is checked first, because the time of
 * decoding grows with its square.
 */
const KEY_DIGITS_MAX = 44;
const SIGNATURE_DIGITS_MAX = 88;
const BASE64 = /^[A-Za-z0-9+/_-]{86}(?:==)?$/;

/**
 * All encodings of the eight points of small order, including non-canonical ones. For such a key, one signature can be
 * valid for many texts, so that anybody could sign as its "owner". OpenSSL accepts these keys, as RFC 8032 allows.
 */
const SMALL_ORDER: ReadonlySet<string> = new Set(
  [
    '0100000000000000000000000000000000000000000000000000000000000000',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    '0000000000000000000000000000000000000000000000000000000000000000',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  ].flatMap((point) => [point, withSignBit(point)]),
);

/**
 * The bytes of a Solana address. null for any other text, and for points that no wallet has: those of small order, and
 * non-canonical encodings.
 */
export function solanaKey(address: string): Uint8Array | null {
  if (address.length > KEY_DIGITS_MAX) return null;
  const key = bs58.decodeUnsafe(address);
  return key?.length === KEY_BYTES && isCanonical(key) && !SMALL_ORDER.has(Buffer.from(key).toString('hex'))
    ? key
    : null;
}

/**
 * Whether the key of a Solana address signed the text: Ed25519 over the UTF-8 bytes, 64 bytes in base58 or base64.
 * OpenSSL refuses a malleated signature, whose second half is not reduced, and a signature whose first half is the
 * neutral point.
 */
export function verifySolanaSignature(address: string, text: string, signature: string): boolean {
  const key = solanaKey(address);
  if (key === null) return false;
  const bytes = Buffer.from(text);
  const publicKey = () =>
    createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(key).toString('base64url') }, format: 'jwk' });
  return decodings(signature).some((candidate) => verify(null, bytes, publicKey(), candidate));
}

/** Both possible decodings, because a text can be valid base58 and valid base64. */
function decodings(signature: string): Uint8Array[] {
  const found: Uint8Array[] = [];
  if (signature.length <= SIGNATURE_DIGITS_MAX) {
    const bytes = bs58.decodeUnsafe(signature);
    if (bytes?.length === SIGNATURE_BYTES) found.push(bytes);
  }
  if (BASE64.test(signature)) found.push(Buffer.from(signature, 'base64'));
  return found;
}

/**
 * Whether the y of a point is below the field's prime 2^255 - 19. Otherwise a second encoding of a point would give its
 * owner a second account.
 */
function isCanonical(point: Uint8Array): boolean {
  if ((point[31]! & 0x7f) !== 0x7f) return true;
  for (let at = 30; at > 0; at -= 1) if (point[at] !== 0xff) return true;
  return point[0]! < 0xed;
}

function withSignBit(point: string): string {
  const bytes = Buffer.from(point, 'hex');
  bytes[31]! |= 0x80;
  return bytes.toString('hex');
}

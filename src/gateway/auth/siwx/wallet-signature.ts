import { createRequire } from 'node:module';
import { createPublicKey, verify } from 'node:crypto';
import bs58 from 'bs58';
import { keccak } from '#config';

/** A text, and the signature to check, which an ordinary wallet should have made. */
interface WalletSignature {
  /** Ledger account of the wallet: `solana:<address>` or `eip155:<address in lower case>`. */
  readonly account: string;
  readonly text: string;
  /** Solana: 64 bytes in base58 or base64. EVM: 65 bytes in hex, with or without 0x. */
  readonly signature: string;
}

const SOLANA = 'solana:';
const EVM = 'eip155:';

/**
 * Whether the wallet of `account` signed `text`: Ed25519 over its UTF-8 bytes, or an EIP-191 personal message. False
 * for malformed values, for a contract wallet and for an account without a wallet. Invalid arguments never cause a
 * rejection.
 */
export async function verifyWalletSignature({ account, text, signature }: WalletSignature): Promise<boolean> {
  if (account.startsWith(SOLANA)) return verifySolanaSignature(account.slice(SOLANA.length), text, signature);
  if (!account.startsWith(EVM)) return false;
  const signer = await recoverSigner(text, signature);
  return signer !== null && signer.lowS && signer.address === account.slice(EVM.length);
}

/**
 * Recovers the public key (64 bytes, without prefix) that signed a digest. null if there is no such key. `rs`: the 64
 * bytes of r and s. `parity`: the parity of y of the signature's point.
 */
export type Recover = (
  digest: Uint8Array,
  rs: Uint8Array,
  parity: 0 | 1,
) => Uint8Array | null | Promise<Uint8Array | null>;

/** The signer of a text. `lowS` is false for the malleated form, which anybody can compute from a signature. */
interface EvmSigner {
  /** Lower case. */
  readonly address: string;
  readonly lowS: boolean;
}

const SIGNATURE = /^(?:0x)?[0-9a-fA-F]{130}$/;
const ORDER = Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex');
const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex');
const ZERO = Buffer.alloc(32);

let recovery: Promise<Recover> | null = null;

/**
 * Loads the function that recovers signers: the native addon (10 ms to load) if it is installed for this platform,
 * otherwise viem (70 ms). Later calls return the same promise.
 */
export function loadRecovery(): Promise<Recover> {
  return (recovery ??= Promise.resolve(nativeRecovery() ?? viemRecovery()));
}

/**
 * The signer of a text by EIP-191 (`personal_sign`). null if the signature is not 65 bytes of hex (with or without 0x),
 * or if its `r`, `s` or `v` is out of range.
 */
export async function recoverSigner(text: string, signature: string): Promise<EvmSigner | null> {
  if (!SIGNATURE.test(signature)) return null;
  const bytes = Buffer.from(signature.slice(-130), 'hex');
  const parity = parityOf(bytes[64]!);
  const s = bytes.subarray(32, 64);
  if (parity === null || !inRange(bytes.subarray(0, 32)) || !inRange(s)) return null;
  const key = await (await loadRecovery())(personalDigest(text), bytes.subarray(0, 64), parity);
  return key === null ? null : { address: `0x${keccak(key).toString('hex', 12)}`, lowS: s.compare(HALF_ORDER) <= 0 };
}

/** The digest that a wallet signs for a text by EIP-191. */
function personalDigest(text: string): Buffer {
  const bytes = Buffer.from(text);
  return keccak(Buffer.concat([Buffer.from(`\x19Ethereum Signed Message:\n${bytes.length}`), bytes]));
}

/** The convention is 27 and 28, from Bitcoin. Some hardware wallets send 0 and 1. */
function parityOf(v: number): 0 | 1 | null {
  if (v === 0 || v === 27) return 0;
  return v === 1 || v === 28 ? 1 : null;
}

function inRange(number: Buffer): boolean {
  return number.compare(ZERO) > 0 && number.compare(ORDER) < 0;
}

/**
 * The native addon of the `secp256k1` package. null if it is not installed or has no binary for this platform. The
 * package documents only its index, which would load a fallback in JavaScript without an addon, so its file
 * `bindings.js` is loaded. test/gateway/auth/siwx/signatures.test.ts has the version with which this was checked.
 */
export function nativeRecovery(): Recover | null {
  type Addon = { ecdsaRecover(rs: Uint8Array, parity: number, digest: Uint8Array, compressed: false): Uint8Array };
  let addon: Addon;
  try {
    addon = createRequire(import.meta.url)('secp256k1/bindings.js') as Addon;
  } catch {
    return null;
  }
  return (digest, rs, parity) => {
    try {
      return addon.ecdsaRecover(rs, parity, digest, false).subarray(1);
    } catch {
      return null;
    }
  };
}

export async function viemRecovery(): Promise<Recover> {
  const { recoverPublicKey } = await import('viem/utils');
  const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}` as const;
  return async (digest, rs, parity) => {
    try {
      const signature = { r: hex(rs.subarray(0, 32)), s: hex(rs.subarray(32)), yParity: parity };
      return Buffer.from((await recoverPublicKey({ hash: hex(digest), signature })).slice(4), 'hex');
    } catch {
      return null;
    }
  };
}

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
  const results: Uint8Array[] = [];
  if (signature.length <= SIGNATURE_DIGITS_MAX) {
    const bytes = bs58.decodeUnsafe(signature);
    if (bytes?.length === SIGNATURE_BYTES) results.push(bytes);
  }
  if (BASE64.test(signature)) results.push(Buffer.from(signature, 'base64'));
  return results;
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

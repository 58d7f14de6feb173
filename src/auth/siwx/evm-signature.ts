import { createRequire } from 'node:module';
import { keccak } from '#wire';

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
export function personalDigest(text: string): Buffer {
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
 * The native addon of the `secp256k1` package, without the package's fallback in JavaScript. null if it is not
 * installed or has no binary for this platform.
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

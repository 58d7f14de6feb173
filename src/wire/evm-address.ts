import { getHashes, hash } from 'node:crypto';
import { keccak256 } from './keccak-256.ts';

const ADDRESS = /^0x(?:[0-9a-f]{40}|[0-9a-fA-F]{40})$/;

/**
 * An EVM address in lower case; null for any other text. Mixed case that does not match the EIP-55 checksum also gives
 * null, because a digit must be wrong.
 */
export function parseEvmAddress(text: string): string | null {
  if (!ADDRESS.test(text)) return null;
  const lower = text.toLowerCase();
  return text === lower || text === checksummed(lower) ? lower : null;
}

/** Converts a lower-case EVM address to its EIP-55 form, as wallets and explorers show it. */
export function checksummed(lower: string): string {
  const digest = keccak(Buffer.from(lower.slice(2))).toString('hex');
  return `0x${Array.from(lower.slice(2), (digit, at) => (digest.charAt(at) >= '8' ? digit.toUpperCase() : digit)).join('')}`;
}

const OPENSSL_NAME = 'keccak-256';
const isInOpenSsl = getHashes().some((name) => name.toLowerCase() === OPENSSL_NAME);

/** Uses OpenSSL, which is loaded already and fastest, if it is that of Node 26. */
export function keccak(bytes: Uint8Array): Buffer {
  return isInOpenSsl ? hash(OPENSSL_NAME, bytes, 'buffer') : keccak256(bytes);
}

import { hash } from 'node:crypto';

const ADDRESS = /^0x(?:[0-9a-f]{40}|[0-9a-fA-F]{40})$/;

/**
 * An EVM address in lower case; null for any other text, and for mixed case that is not its EIP-55 checksum, as a
 * digit is wrong then.
 */
export function parseEvmAddress(text: string): string | null {
  if (!ADDRESS.test(text)) return null;
  const lower = text.toLowerCase();
  return text === lower || text === checksummed(lower) ? lower : null;
}

/** An EVM address as wallets and explorers show it (EIP-55), from lower case. */
export function checksummed(lower: string): string {
  const digest = keccak(Buffer.from(lower.slice(2))).toString('hex');
  return `0x${Array.from(lower.slice(2), (digit, at) => (digest.charAt(at) >= '8' ? digit.toUpperCase() : digit)).join('')}`;
}

/** OpenSSL's, which is here already; a JavaScript one takes 12 ms to import. */
export function keccak(bytes: Uint8Array): Buffer {
  return hash('keccak-256', bytes, 'buffer');
}

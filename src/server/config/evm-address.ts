import { getHashes, hash } from 'node:crypto';

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

/** Keccak-256 for Node 24, whose OpenSSL lacks it. The permutation is Keccak-f[1600] of FIPS 202, section 3.2. */

const RATE_BYTES = 136;
const ROUNDS = 24;
const LANE = (1n << 64n) - 1n;

/** The digest as Ethereum uses it: with the padding of the original Keccak, not that of SHA-3. */
export function keccak256(bytes: Uint8Array): Buffer {
  const padded = Buffer.alloc((Math.floor(bytes.length / RATE_BYTES) + 1) * RATE_BYTES);
  padded.set(bytes);
  padded[bytes.length]! ^= 0x01;
  padded[padded.length - 1]! ^= 0x80;
  const lanes = Array.from({ length: 25 }, () => 0n);
  for (let block = 0; block < padded.length; block += RATE_BYTES) {
    for (let at = 0; at < RATE_BYTES / 8; at++) lanes[at]! ^= padded.readBigUInt64LE(block + at * 8);
    permute(lanes);
  }
  const digest = Buffer.alloc(32);
  for (let at = 0; at < 4; at++) digest.writeBigUInt64LE(lanes[at]!, at * 8);
  return digest;
}

/** Changes the 25 lanes in place. The lane at column `x` and row `y` has the index `x + 5 * y`. */
function permute(lanes: bigint[]): void {
  let register = 1;
  for (let round = 0; round < ROUNDS; round++) {
    // Theta.
    const parity = [0, 1, 2, 3, 4].map((x) => [0, 5, 10, 15, 20].reduce((sum, row) => sum ^ lanes[x + row]!, 0n));
    for (let at = 0; at < 25; at++) lanes[at]! ^= parity[(at + 4) % 5]! ^ rotated(parity[(at + 1) % 5]!, 1);
    // Rho and pi.
    let [x, y, lane] = [1, 0, lanes[1]!];
    for (let step = 0; step < 24; step++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const moved = rotated(lane, (((step + 1) * (step + 2)) / 2) % 64);
      lane = lanes[x + 5 * y]!;
      lanes[x + 5 * y] = moved;
    }
    // Chi.
    for (let row = 0; row < 25; row += 5) {
      const old = lanes.slice(row, row + 5);
      for (let at = 0; at < 5; at++) lanes[row + at] = old[at]! ^ (~old[(at + 1) % 5]! & LANE & old[(at + 2) % 5]!);
    }
    // Iota. The bits of the round's constant come from a shift register.
    for (let bit = 0; bit < 7; bit++) {
      if (register & 1) lanes[0]! ^= 1n << BigInt(2 ** bit - 1);
      register = register & 0x80 ? (register << 1) ^ 0x171 : register << 1;
    }
  }
}

const rotated = (lane: bigint, bits: number): bigint => ((lane << BigInt(bits)) | (lane >> BigInt(64 - bits))) & LANE;

import fc from 'fast-check';
import { keccak256 as viems } from 'viem';
import { expect, test } from 'vitest';
import { keccak, keccak256 } from '../../../src/server/config/evm-address.ts';

// Node 26 has the digest in OpenSSL, Node 24 does not: addresses have the same checksums on both.
test('the digest is the same by our code, by OpenSSL and by viem, for each length around a block', () => {
  const bytes = fc.uint8Array({ minLength: 0, maxLength: 300 });
  fc.assert(
    fc.property(bytes, (input) => {
      expect(`0x${keccak256(input).toString('hex')}`).toBe(viems(input));
      expect(keccak(input).toString('hex')).toBe(keccak256(input).toString('hex'));
    }),
    { examples: [0, 1, 135, 136, 137, 271, 272, 273].map((length) => [new Uint8Array(length).fill(7)]) },
  );
});

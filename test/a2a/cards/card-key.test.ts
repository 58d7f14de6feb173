import { createPublicKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { createCardKey, createIdentity } from '../../../src/gateway/auth/identity.ts';

const SEED = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';

test('a seed has one key for ever, another seed another', () => {
  const { jwk } = createCardKey(createIdentity({ seed: SEED }));
  // Written down once: another derivation would turn every card that somebody keeps into a forged one.
  expect(jwk).toEqual(KEY);
  expect(createCardKey(createIdentity({ seed: SEED.replace('00', '01') })).kid).not.toBe(jwk.kid);
});

test('signs as ES256 does, which the public key verifies', () => {
  const { jwk, sign } = createCardKey(createIdentity({ seed: SEED }));
  const signature = sign(Buffer.from('text'));
  expect(signature.byteLength).toBe(64);
  const key = createPublicKey({ format: 'jwk', key: { ...jwk } });
  expect(verify('sha256', Buffer.from('text'), { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(true);
  expect(verify('sha256', Buffer.from('other'), { key, dsaEncoding: 'ieee-p1363' }, signature)).toBe(false);
});

test('a secret that is no scalar of the curve is passed over', () => {
  const { kid } = createCardKey({ secret: () => Buffer.alloc(32, 0xff) });
  expect(kid).toMatch(/^[\w-]{43}$/);
});

const KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'dFzSyrooLF7hFKWs1hFDCDGjOdC2444JrM2fOKTMQwA',
  y: 'RRaIZhMO6p4KT4Bvgi-DxDNScOjDb0nRQgobr9VJmIU',
  kid: '6tN4Ze5yzz63obDHhILt-iNXx_XBrHqK6ZYVtLnnPI8',
  use: 'sig',
  alg: 'ES256',
};

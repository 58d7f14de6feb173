import { expect, test } from 'vitest';
import { createSeals } from '../../../src/foundation/security/seals.ts';

const SECRET = Buffer.alloc(32, 1);
const VALUE = { round: 1 };
let at = 1_000;
const sealsOf = (secret: Uint8Array | readonly Uint8Array[]) => createSeals({ secret, ttlMs: 60_000, now: () => at });
const seals = sealsOf(SECRET);

test('a sealed text is opened for its account, by every gateway with the secret', () => {
  const text = seals.seal('alice', VALUE);
  expect(seals.open('alice', text)).toEqual(VALUE);
  expect(sealsOf([Buffer.alloc(32, 2), SECRET]).open('alice', text)).toEqual(VALUE);
});

test('it is not opened for others, after a change, without its secret, or once it has expired', () => {
  const text = seals.seal('alice', VALUE);
  const [payload, tag] = text.split('.') as [string, string];
  const later = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('61000', '99000'));
  expect(later.toString()).toContain('99000');
  expect(seals.open('bob', text)).toBeNull();
  for (const changed of [
    `${later.toString('base64url')}.${tag}`,
    `${payload}.`,
    payload,
    `${text}${'x'.repeat(2 ** 20)}`,
  ])
    expect(seals.open('alice', changed)).toBeNull();
  expect(sealsOf(Buffer.alloc(32, 2)).open('alice', text)).toBeNull();
  at += 59_999;
  expect(seals.open('alice', text)).toEqual(VALUE);
  at += 1;
  expect(seals.open('alice', text)).toBeNull();
});

import { expect, test } from 'vitest';
import { createClaimDensity } from '../../../src/gateway/call/claim-density.ts';

const of = (id: string, service = 'acme/one') => ({ id, service });
const KIB = 1024;

test('a provider is compared with the others of its service, once both have said enough', () => {
  const claims = createClaimDensity();
  const add = (id: string, density: number, kib: number, service?: string) =>
    claims.add(of(id, service), { tokens: density * kib * KIB, bytes: kib * KIB });
  expect(add('sly', 0.9, 32)).toBe(false);
  expect(add('honest', 0.25, 8)).toBe(false);
  expect(add('sly', 0.9, 1)).toBe(false);
  expect(add('honest', 0.25, 8)).toBe(false);
  expect(add('sly', 0.9, 1)).toBe(true);
  expect(add('honest', 0.25, 1)).toBe(false);
  // Others of the model write in another language.
  expect(add('other', 0.45, 32)).toBe(false);
  // Another service has other texts.
  expect(add('sly', 0.9, 32, 'acme/two')).toBe(false);
});

test('one low claim of several makes no other one unusual, and a provider that changes is judged anew', () => {
  const claims = createClaimDensity();
  const add = (id: string, density: number, kib = 32) =>
    claims.add(of(id), { tokens: density * kib * KIB, bytes: kib * KIB });
  add('low', 0.05);
  add('one', 0.25);
  expect(add('two', 0.26)).toBe(false);
  expect(add('sly', 0.9)).toBe(true);
  for (let call = 0; call < 40; call++) add('sly', 0.25);
  expect(add('sly', 0.25)).toBe(false);
});

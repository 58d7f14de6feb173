import { expect, test } from 'vitest';
import { createCatalog } from '../../../src/server/catalog/catalog.ts';
import { clock, offer } from '../../gateway/call/routing/offers.ts';

const DAY_MS = 24 * 3_600_000;
const TODAY = 1_700_000_000_000;

/** A catalogue, and providers that come and go. */
function world() {
  const elapsed = clock(0);
  const catalog = createCatalog(elapsed);
  const offers = (provider: string, count: number, createdAt = TODAY) => {
    const made = offer({ provider });
    return Array.from({ length: count }, (_, i) => ({
      ...made,
      id: `model/${provider}/${i}`,
      service: `${provider}/${i}`,
      createdAt,
    }));
  };
  const leaves = (provider: string, count: number, createdAt?: number) => {
    const its = offers(provider, count, createdAt);
    catalog.replace(provider, its);
    catalog.depart(provider, its, 0);
  };
  const known = (provider: string, count: number) =>
    offers(provider, count).filter(({ service }) => catalog.knows(service, 'model')).length;
  return { catalog, elapsed, leaves, known };
}

test('thousands of names of strangers push nobody else’s out', () => {
  const { catalog, leaves, known } = world();
  leaves('acme', 40, TODAY - DAY_MS);
  for (let i = 0; i < 30; i++) leaves(`stranger${i}`, 1_000);
  expect(known('acme', 40)).toBe(40);
  expect(catalog.knows('id-acme:acme/7', 'model')).toBe(true);
  // What is remembered has a bound.
  const all = Array.from({ length: 30 }, (_, i) => known(`stranger${i}`, 1_000)).reduce((sum, one) => sum + one, 0);
  expect(all).toBeGreaterThan(1_000);
  expect(all).toBeLessThanOrEqual(10_000);
});

test('nor do thousands of strangers with one name each, who came later', () => {
  const { leaves, known } = world();
  leaves('acme', 1, TODAY - DAY_MS);
  for (let i = 0; i < 15_000; i++) leaves(`stranger${i}`, 1);
  expect(known('acme', 1)).toBe(1);
});

test('who offers the same name does not take it along', () => {
  const { catalog, leaves } = world();
  leaves('acme', 1, TODAY - DAY_MS);
  const same = [{ ...offer({ provider: 'copy', service: 'acme/0' }), createdAt: TODAY }];
  catalog.depart('copy', same, 0);
  for (let i = 0; i < 30; i++) leaves(`stranger${i}`, 1_000);
  expect(catalog.knows('acme/0', 'model')).toBe(true);
});

test('a name is known for five minutes', () => {
  const { catalog, elapsed, leaves, known } = world();
  leaves('acme', 2_000, TODAY - DAY_MS);
  elapsed.advance(5 * 60_000 - 1);
  expect(known('acme', 2_000)).toBe(2_000);
  expect(() => catalog.resolve('acme/0', 'model')).toThrow('has disconnected');
  elapsed.advance(1);
  expect(known('acme', 2_000)).toBe(0);
  // Those that are over make room.
  leaves('late', 9_000);
  expect(known('late', 9_000)).toBe(9_000);
});

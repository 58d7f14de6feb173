import { describe, expect, test } from 'vitest';
import { parseRates } from '#billing/amounts';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import { offer, names, seeded } from './offers.ts';

const cheap = offer({ provider: 'Cheap', price: 0.1 });
const middling = offer({ provider: 'Middling', price: 1 });
const native = offer({ provider: 'Native', price: 10 });
const OFFERS = [cheap, middling, native];
const isNative = (one: Offer) => one === native;

function world() {
  const health = createHealth({ now: () => 1_000_000, cooldownMs: 30_000 });
  const router = createRouter({ health, random: seeded(3), attemptsMax: 2 });
  const choose = (more: object = {}, key: string | null = null) =>
    names(router.choose(OFFERS, { ...NO_PREFERENCES, ...more }, key, { prefers: isNative }));
  return { health, router, choose };
}

describe('an offer that can do more of a call', () => {
  test('is tried first, whatever it costs', () => {
    const { choose } = world();
    for (let round = 0; round < 20; round++) expect(choose()[0]).toBe('Native');
  });

  test('comes after those that the consumer orders, and before the one of its session', () => {
    const { choose, router } = world();
    expect(choose({ order: ['Middling'] })).toEqual(['Middling', 'Native']);
    router.served('session', cheap);
    expect(choose({}, 'session')).toEqual(['Native', 'Cheap']);
  });

  test('is not tried while it rests', () => {
    const { choose, health } = world();
    health.unreachable(native);
    expect(choose()).not.toContain('Native');
  });
});

describe('a bound of the price of a prompt', () => {
  const caching = { ...cheap, price: { id: 'p', rates: parseRates({ prompt: 0.1, input_cache_write: 5 }) } };

  test('is one of the tokens of a cache, too', () => {
    const { router } = world();
    const choose = (prompt: bigint) =>
      names(router.choose([caching, middling], { ...NO_PREFERENCES, maxPrice: { prompt } }, null));
    expect(choose(2_000_000n)).toEqual(['Middling']);
    expect(choose(5_000_000n).toSorted()).toEqual(['Cheap', 'Middling']);
  });

  test('and the dearest of them is what an offer is weighed by', () => {
    const { router } = world();
    const first = () => names(router.choose([caching, middling], NO_PREFERENCES, null))[0];
    expect(Array.from({ length: 100 }, first).filter((name) => name === 'Cheap').length).toBeLessThan(40);
  });
});

import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import type { Offer } from '../../../../src/server/catalog/offers.ts';
import { offer, names, seeded } from './offers.ts';

const own = offer({ provider: 'own', price: 1 });
const stranger = (provider: string, price: number): Offer => ({
  ...offer({ provider, price }),
  endpoint: { kind: 'tunnel', provider: `id-${provider}`, basePath: '/model/acme%2Fsmall' },
});
const near = stranger('near', 9);
const dear = stranger('dear', 10_000);
const cheap = stranger('cheap', 0.5);

function world() {
  const health = createHealth({ now: () => 1_000_000, cooldownMs: 30_000 });
  const router = createRouter({ health, random: seeded(1), attemptsMax: 3, priceSpreadMax: 10 });
  return {
    health,
    choose: (offers: readonly Offer[], more = {}) => names(router.choose(offers, { ...NO_PREFERENCES, ...more }, null)),
  };
}

describe('what a stranger asks', () => {
  test('is no fallback, and no part of a lock, beyond ten times what the operator asks', () => {
    expect(world().choose([own, dear, near]).toSorted()).toEqual(['near', 'own']);
  });

  test('is not paid because the operator’s own offer rests or is open', () => {
    const { health, choose } = world();
    health.unreachable(own);
    expect(choose([own, dear])).toEqual(['own']);
    for (let i = 0; i < 20; i++) health.unreachable(own);
    expect(choose([own, dear])).toEqual([]);
  });

  test('is no fallback beyond ten times the first choice where there are strangers only', () => {
    expect(world().choose([cheap, dear])).toEqual(['cheap']);
    expect(world().choose([dear])).toEqual(['dear']);
  });

  test.each([
    ['order', { order: ['dear'] }],
    ['only', { only: ['dear', 'own'] }],
    ['max_price', { maxPrice: { prompt: 20_000_000_000n } }],
  ])('is paid where the consumer says so: %s', (_, preferences) => {
    expect(world().choose([own, dear], preferences)).toContain('dear');
  });

  test('does not keep the operator’s own dear offer from being a fallback', () => {
    expect(world().choose([cheap, offer({ provider: 'own', price: 100 })])).toEqual(['cheap', 'own']);
  });
});

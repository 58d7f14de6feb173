import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

const cheap = offer({ provider: 'Cheap', price: 0.1 });
const dear = offer({ provider: 'Dear', price: 10 });
const OFFERS = [cheap, dear];

function setUp(stickyMax = 100) {
  const now = clock();
  const health = createHealth({ now, cooldownMs: 30_000 });
  const router = createRouter({ health, random: seeded(5), attemptsMax: 3, now, stickyTtlMs: 60_000, stickyMax });
  const first = (key: string | null, preferences = {}) =>
    names(router.choose(OFFERS, { ...NO_PREFERENCES, ...preferences }, key))[0];
  return { now, health, router, first };
}

describe('a call with a sticky key', () => {
  test('goes to who served the last one, with the others as fallbacks', () => {
    const { router, first } = setUp();
    router.served('session-1', dear);
    for (let round = 0; round < 50; round++) expect(first('session-1')).toBe('Dear');
    expect(names(router.choose(OFFERS, NO_PREFERENCES, 'session-1'))).toEqual(['Dear', 'Cheap']);
  });

  test('does not carry others with it', () => {
    const { router, first } = setUp();
    router.served('session-1', dear);
    const free = Array.from({ length: 100 }, () => [first('session-2'), first(null)]).flat();
    expect(free.filter((name) => name === 'Dear').length).toBeLessThan(10);
  });

  test('follows the newest', () => {
    const { router, first } = setUp();
    router.served('session-1', dear);
    router.served('session-1', cheap);
    expect(first('session-1')).toBe('Cheap');
  });

  test('is held for each service by itself', () => {
    const { router, first } = setUp();
    router.served('session-1', dear);
    router.served('session-1', offer({ provider: 'Cheap', service: 'another/model' }));
    expect(first('session-1')).toBe('Dear');
  });

  test('is let go after its time, which each call renews', () => {
    const { now, router, first } = setUp();
    router.served('session-1', dear);
    now.advance(59_999);
    expect(first('session-1')).toBe('Dear');
    router.served('session-1', dear);
    now.advance(59_999);
    expect(first('session-1')).toBe('Dear');
    now.advance(1);
    expect(first('session-1')).toBe('Cheap');
  });

  test('leaves a provider that cools down', () => {
    const { health, router, first } = setUp();
    router.served('session-1', dear);
    health.unreachable(dear);
    expect(first('session-1')).toBe('Cheap');
  });

  test('gives way to order, not to sort', () => {
    const { router, first } = setUp();
    router.served('session-1', dear);
    expect(first('session-1', { order: ['Cheap'] })).toBe('Cheap');
    expect(first('session-1', { sort: 'price' })).toBe('Dear');
    expect(first('session-1', { ignore: ['Dear'] })).toBe('Cheap');
  });
});

test('only so many keys are remembered, the newest', () => {
  const { router, first } = setUp(10);
  for (let session = 0; session < 9; session++) router.served(`session-${session}`, dear);
  router.served('session-0', dear);
  router.served('session-9', dear);
  router.served('session-10', dear);
  expect(first('session-0')).toBe('Dear');
  expect(first('session-1')).toBe('Cheap');
  expect(first('session-8')).toBe('Dear');
  expect(first('session-10')).toBe('Dear');
});

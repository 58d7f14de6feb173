import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES, type RoutePreferences } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

// Calls whose prompts begin alike prefer the offer that has this beginning in its cache, if none is cheaper.

const CACHE = { prompt: 10, completion: 10, input_cache_read: 1 };
const a = offer({ provider: 'A', pricing: CACHE });
const b = offer({ provider: 'B', pricing: CACHE });
const ROUNDS = 40;

function world(offers = [a, b], stickyMax = 100) {
  const now = clock();
  const health = createHealth({ now, cooldownMs: 30_000 });
  const router = createRouter({ health, random: seeded(5), attemptsMax: 3, now, prefixTtlMs: 60_000, stickyMax });
  const first = (key: string, more: Partial<RoutePreferences> = {}, share = 1, session: string | null = null) =>
    names(router.choose(offers, { ...NO_PREFERENCES, ...more }, session, { prefix: { key, share } }))[0];
  /** The offers that the next calls go to. */
  const chosen = (...of: Parameters<typeof first>) => [
    ...new Set(Array.from({ length: ROUNDS }, () => first(...of))).values(),
  ];
  const served = (key: string, by: typeof a, isCached = true) => router.servedPrefix({ key, share: 1 }, by, isCached);
  return { now, health, router, first, chosen, served };
}

describe('a prefix', () => {
  test('goes to who has it, with the others as fallbacks', () => {
    const { router, chosen, served } = world();
    expect(chosen('one')).toHaveLength(2);
    served('one', b);
    expect(chosen('one')).toEqual(['B']);
    expect(names(router.choose([a, b], NO_PREFERENCES, null, { prefix: { key: 'one', share: 1 } }))).toEqual([
      'B',
      'A',
    ]);
    expect(chosen('two')).toHaveLength(2);
  });

  test('follows who served it last, and is let go after its time, which each call renews', () => {
    const { now, chosen, served } = world();
    served('one', a);
    served('one', b);
    now.advance(59_999);
    expect(chosen('one')).toEqual(['B']);
    served('one', b);
    now.advance(59_999);
    expect(chosen('one')).toEqual(['B']);
    now.advance(1);
    expect(chosen('one')).toHaveLength(2);
  });

  test('that nobody is seen to cache is tried once more, then spread until a reply has cached tokens', () => {
    const { chosen, served } = world();
    served('one', b, false);
    expect(chosen('one')).toEqual(['B']);
    served('one', b, false);
    expect(chosen('one')).toHaveLength(2);
    served('one', a, false);
    expect(chosen('one')).toHaveLength(2);
    served('one', a, true);
    expect(chosen('one')).toEqual(['A']);
    // Another offer took over, and may have cached it.
    served('one', b, false);
    expect(chosen('one')).toEqual(['B']);
  });

  test('leaves an offer that has just failed, also when it has cooled down', () => {
    const { now, health, chosen, served } = world();
    served('one', b);
    health.unreachable(b);
    expect(chosen('one')).toEqual(['A']);
    now.advance(30_000);
    health.succeeded(b, { firstByteMs: 1, durationMs: 1, completionTokens: 1 });
    served('one', b);
    now.advance(30_001);
    expect(chosen('one')).toEqual(['B']);
  });

  test('gives way to order, sort, ignore and only, and to a session', () => {
    const { router, chosen, served } = world();
    served('one', b);
    expect(chosen('one', { order: ['A'] })).toEqual(['A']);
    expect(chosen('one', { ignore: ['B'] })).toEqual(['A']);
    expect(chosen('one', { only: ['A'] })).toEqual(['A']);
    expect(chosen('one', { sort: 'price' })).toHaveLength(2);
    router.served('session', a);
    expect(chosen('one', {}, 1, 'session')).toEqual(['A']);
    // A session that was not served yet has no offer.
    expect(chosen('one', {}, 1, 'new')).toEqual(['B']);
  });

  test('is remembered for each service by itself', () => {
    const { chosen, served } = world();
    served('one', b);
    served('one', offer({ provider: 'A', service: 'another/model', pricing: CACHE }));
    expect(chosen('one')).toEqual(['B']);
  });
});

describe('a dearer offer', () => {
  /** B's prompts cost 12, of which a cached token saves 11. With half of a prompt cached it is 6.5, and A's is 10. */
  const dearer = offer({ provider: 'B', pricing: { prompt: 12, completion: 10, input_cache_read: 1 } });

  test('is preferred if its cache makes it cheaper', () => {
    const { chosen, served } = world([a, dearer]);
    served('one', dearer);
    expect(chosen('one', {}, 0.5)).toEqual(['B']);
  });

  test('is not preferred if too little of the prompt is cached, or if cached tokens cost the same', () => {
    const { chosen, served } = world([a, dearer]);
    served('one', dearer);
    expect(chosen('one', {}, 0.1)).toHaveLength(2);
    const flat = offer({ provider: 'B', price: 11 });
    const other = world([a, flat]);
    other.served('one', flat);
    expect(other.chosen('one')).toHaveLength(2);
  });

  test('is preferred while the cheaper one rests', () => {
    const flat = offer({ provider: 'B', price: 11 });
    const c = offer({ provider: 'C', price: 11 });
    const { health, chosen, served } = world([a, flat, c]);
    served('one', flat);
    health.unreachable(a);
    expect(chosen('one')).toEqual(['B']);
  });

  test('is not compared by rates where the whole cost of the call is known', () => {
    const { router, served } = world([a, dearer]);
    served('one', dearer);
    const costOf = (each: typeof a) => (each === a ? 5n : 6n);
    const call = { prefix: { key: 'one', share: 1 }, costOf };
    const firsts = Array.from(
      { length: ROUNDS },
      () => names(router.choose([a, dearer], NO_PREFERENCES, null, call))[0],
    );
    expect(new Set(firsts).size).toBe(2);
  });
});

test('only so many prefixes are remembered, the newest', () => {
  const { chosen, served } = world([a, b], 10);
  for (let prefix = 0; prefix < 12; prefix++) served(`prefix-${prefix}`, b);
  expect(chosen('prefix-1')).toHaveLength(2);
  expect(chosen('prefix-7')).toEqual(['B']);
});

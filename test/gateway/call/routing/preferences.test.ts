import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES, type RoutePreferences } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

const a = offer({ provider: 'A', price: 1 });
const b = offer({ provider: 'B', price: 2 });
const c = offer({ provider: 'C', price: 3 });
const d = offer({ provider: 'D', pricing: { prompt: 4, completion: 4, image: 0.01 } });
const ALL = [d, c, b, a];

function setUp(attemptsMax = 3) {
  const now = clock();
  const health = createHealth({ now, cooldownMs: 30_000, failuresMax: 2 });
  const router = createRouter({ health, random: seeded(3), attemptsMax, now });
  const choose = (preferences: Partial<RoutePreferences>, offers = ALL) =>
    names(router.choose(offers, { ...NO_PREFERENCES, ...preferences }, null));
  return { now, health, choose };
}

const often = (check: () => void) => {
  for (let round = 0; round < 50; round++) check();
};

describe('order', () => {
  test('comes first, then the rest', () => {
    const { choose } = setUp(4);
    often(() => {
      const [first, second, ...rest] = choose({ order: ['D', 'C'] });
      expect([first, second]).toEqual(['D', 'C']);
      expect(rest.sort()).toEqual(['A', 'B']);
    });
  });

  test('takes ids and names, names in any case', () => {
    const { choose } = setUp();
    often(() => expect(choose({ order: ['id-C', 'd'] }).slice(0, 2)).toEqual(['C', 'D']));
    expect(choose({ only: ['ID-C'] })).toEqual([]);
  });

  test('passes over who cools down', () => {
    const { health, choose } = setUp();
    health.unreachable(d);
    often(() => expect(choose({ order: ['D', 'C'] })[0]).toBe('C'));
  });
});

describe('only and ignore', () => {
  test('leave the others out', () => {
    const { choose } = setUp();
    often(() => {
      expect(choose({ only: ['A', 'b'] }).sort()).toEqual(['A', 'B']);
      expect(choose({ ignore: ['A', 'id-B'] }).sort()).toEqual(['C', 'D']);
      expect(choose({ only: ['A', 'B'], ignore: ['A'] })).toEqual(['B']);
    });
    expect(choose({ only: ['nobody'] })).toEqual([]);
    expect(choose({ ignore: ['A', 'B', 'C', 'D'] })).toEqual([]);
  });

  test('hold for an only offer too', () => {
    const { choose } = setUp();
    expect(choose({ only: ['B'] }, [a])).toEqual([]);
    expect(choose({ ignore: ['a'] }, [a])).toEqual([]);
    expect(choose({ only: ['a'] }, [a])).toEqual(['A']);
    expect(choose({ maxPrice: { prompt: 999_999n } }, [a])).toEqual([]);
    expect(choose({ order: ['B'], allowFallbacks: false }, [a])).toEqual([]);
    expect(choose({ order: ['B'] }, [a])).toEqual(['A']);
  });
});

describe('allow_fallbacks: false', () => {
  test('leaves the first', () => {
    const { choose } = setUp();
    often(() => expect(choose({ allowFallbacks: false })).toHaveLength(1));
    expect(choose({ allowFallbacks: false, sort: 'price' })).toEqual(['A']);
  });

  test('with an order leaves the first of it that serves this, well or not', () => {
    const { health, choose } = setUp();
    expect(choose({ allowFallbacks: false, order: ['nobody', 'C', 'B'] })).toEqual(['C']);
    expect(choose({ allowFallbacks: false, order: ['nobody'] })).toEqual([]);
    health.unreachable(c);
    health.unreachable(c);
    expect(choose({ allowFallbacks: false, order: ['C', 'B'] })).toEqual([]);
  });
});

describe('max_price', () => {
  test('holds for each rate by itself, and includes the limit', () => {
    const { choose } = setUp(4);
    expect(choose({ maxPrice: { prompt: 2_000_000n } }).sort()).toEqual(['A', 'B']);
    expect(choose({ maxPrice: { completion: 1_999_999n } })).toEqual(['A']);
    expect(choose({ maxPrice: { image: 0n } }).sort()).toEqual(['A', 'B', 'C']);
    expect(choose({ maxPrice: { image: 10_000_000_000n } })).toHaveLength(4);
    expect(choose({ maxPrice: { prompt: 0n } })).toEqual([]);
    expect(choose({ maxPrice: {} })).toHaveLength(4);
  });
});

describe('sort', () => {
  const measured = ({ health }: ReturnType<typeof setUp>) => {
    health.succeeded(a, { firstByteMs: 300, durationMs: 1000, completionTokens: 10 });
    health.succeeded(b, { firstByteMs: 100, durationMs: 1000, completionTokens: 20 });
    health.succeeded(c, { firstByteMs: 200, durationMs: 1000, completionTokens: 90 });
  };

  test('price: the cheapest first', () => {
    const { choose } = setUp(4);
    often(() => expect(choose({ sort: 'price' })).toEqual(['A', 'B', 'C', 'D']));
  });

  test('latency: the soonest first byte first, the unknown last', () => {
    const all = setUp(4);
    measured(all);
    often(() => expect(all.choose({ sort: 'latency' })).toEqual(['B', 'C', 'A', 'D']));
  });

  test('throughput: the most tokens per second first, the unknown last', () => {
    const all = setUp(4);
    measured(all);
    often(() => expect(all.choose({ sort: 'throughput' })).toEqual(['C', 'B', 'A', 'D']));
  });

  test('draws by weight where nothing is known', () => {
    const { choose } = setUp(4);
    const first = new Set(Array.from({ length: 200 }, () => choose({ sort: 'latency' })[0]));
    expect(first.size).toBeGreaterThan(1);
  });

  test('comes after health', () => {
    const { health, choose } = setUp(4);
    health.unreachable(a);
    expect(choose({ sort: 'price' })).toEqual(['B', 'C', 'D', 'A']);
  });
});

test('there are never more than attemptsMax', () => {
  for (const attemptsMax of [1, 2, 3]) {
    const { choose } = setUp(attemptsMax);
    expect(choose({})).toHaveLength(attemptsMax);
    expect(choose({ order: ['A', 'B', 'C', 'D'] })).toHaveLength(attemptsMax);
  }
});

test('an only offer is given back as it came', () => {
  const health = createHealth({ now: clock(), cooldownMs: 1 });
  const router = createRouter({ health, random: () => 0, attemptsMax: 3 });
  const offers = [a];
  expect(router.choose(offers, NO_PREFERENCES, null)).toBe(offers);
  expect(router.choose([], NO_PREFERENCES, null)).toEqual([]);
});

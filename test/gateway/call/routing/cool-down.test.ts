import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

const COOLDOWN = 30_000;
const PROBE = 10_000;
const OPEN_AFTER = 10;
const SAMPLE = { firstByteMs: 10, durationMs: 20, completionTokens: 5 };

function setUp(cooldownMs = COOLDOWN) {
  const now = clock();
  const health = createHealth({ now, cooldownMs, probeMs: PROBE, failuresMax: OPEN_AFTER });
  const router = createRouter({ health, random: seeded(1), attemptsMax: 3, now });
  const choose = (...offers: Parameters<typeof names>[0]) => names(router.choose(offers, NO_PREFERENCES, null));
  const fail = (one: Parameters<typeof health.unreachable>[0], times = 1) => {
    for (let time = 0; time < times; time++) health.unreachable(one);
  };
  return { now, health, router, choose, fail };
}

describe('an offer that failed', () => {
  const a = offer({ provider: 'A', price: 0.01 });
  const b = offer({ provider: 'B', price: 10 });

  test('is passed over while it cools down', () => {
    const { health, choose, now } = setUp();
    health.unreachable(a);
    expect(health.available(a)).toBe(false);
    for (let round = 0; round < 20; round++) expect(choose(a, b)).toEqual(['B', 'A']);
    now.advance(COOLDOWN - 1);
    expect(choose(a, b)).toEqual(['B', 'A']);
    expect(health.available(a)).toBe(false);
    now.advance(1);
    expect(health.available(a)).toBe(true);
  });

  test('stays known as failing until a call succeeds, however long ago it failed', () => {
    const { health, now } = setUp();
    expect(health.failing(a)).toBe(false);
    health.unreachable(a, false);
    for (const ms of [0, COOLDOWN, 20 * COOLDOWN, 3_600_000]) {
      now.advance(ms);
      expect(health.failing(a)).toBe(true);
    }
    // It is tried again as usual.
    expect(health.available(a)).toBe(true);
    health.succeeded(a, SAMPLE, false);
    expect(health.failing(a)).toBe(false);
  });

  test('is failing while most calls of the last hour failed, although each account may call it', () => {
    const { health, now } = setUp();
    for (let call = 0; call < 4; call++) health.succeeded(a, SAMPLE);
    for (let call = 0; call < 5; call++) health.blamed(a, 'account', now(), false);
    // Of less than ten calls nothing is said.
    expect(health.failing(a)).toBe(false);
    health.blamed(a, 'account', now(), false);
    expect([health.available(a), health.failing(a)]).toEqual([true, true]);
    now.advance(3_700_000);
    expect(health.failing(a)).toBe(false);
  });

  test('is the last resort, after those that are probed, but not once it is open', () => {
    const { health, choose, fail } = setUp();
    const middle = offer({ provider: 'Middle', price: 1 });
    health.unreachable(a);
    expect(choose(a, b, middle).at(-1)).toBe('A');
    expect(choose(a, b, middle)).toHaveLength(3);
    fail(a, OPEN_AFTER);
    expect(choose(a, b, middle)).not.toContain('A');
  });

  test('is then probed by one call at a time, until one succeeds', () => {
    const { health, choose, now } = setUp();
    health.unreachable(a);
    now.advance(COOLDOWN);
    // A is so much cheaper that it is always drawn first.
    expect(choose(a, b)).toEqual(['A', 'B']);
    for (let round = 0; round < 20; round++) expect(choose(a, b)).toEqual(['B', 'A']);
    now.advance(20);
    health.succeeded(a, SAMPLE);
    for (let round = 0; round < 20; round++) expect(choose(a, b)[0]).toBe('A');
  });

  test('cools down again when the probe fails', () => {
    const { health, choose, now } = setUp();
    health.unreachable(a);
    now.advance(COOLDOWN);
    choose(a, b);
    health.unreachable(a);
    now.advance(COOLDOWN - 1);
    expect(choose(a, b)).toEqual(['B', 'A']);
    now.advance(1);
    expect(choose(a, b)).toEqual(['A', 'B']);
  });

  test('is probed again as soon as it has cooled down, however long a probe may take', () => {
    const { health, choose, now } = setUp(1_000);
    health.unreachable(a);
    now.advance(1_000);
    expect(choose(a, b)).toEqual(['A', 'B']);
    health.unreachable(a);
    now.advance(1_000);
    expect(choose(a, b)).toEqual(['A', 'B']);
  });

  test('is probed again when nothing was heard of the probe', () => {
    const { health, choose, now } = setUp();
    health.unreachable(a);
    now.advance(COOLDOWN);
    choose(a, b);
    now.advance(PROBE - 1);
    expect(choose(a, b)).toEqual(['B', 'A']);
    now.advance(1);
    expect(choose(a, b)).toEqual(['A', 'B']);
  });

  test('is not brought back by a call that began before it failed', () => {
    const { health, now } = setUp();
    health.unreachable(a);
    now.advance(1_000);
    health.succeeded(a, { ...SAMPLE, durationMs: 5_000 });
    expect(health.available(a)).toBe(false);
    health.succeeded(a, { ...SAMPLE, durationMs: 500 });
    expect(health.available(a)).toBe(true);
  });

  test('waiting for its probe is a last fallback of one that is well', () => {
    const { health, choose, now } = setUp();
    const middle = offer({ provider: 'Middle', price: 0.3 });
    health.unreachable(middle);
    now.advance(COOLDOWN);
    expect(choose(middle, a, b)).toEqual(['A', 'B', 'Middle']);
    // It was not the one to be tried, so it still waits.
    expect(choose(middle, a, b)).toEqual(['A', 'B', 'Middle']);
  });

  test('long ago is well again, probe or not', () => {
    const { health, now } = setUp();
    health.unreachable(a);
    now.advance(COOLDOWN * 11 + 1);
    expect(health.healthState(a)).toBe('good');
  });

  test('rests not at all without a cool-down', () => {
    const { health, choose } = setUp(0);
    health.unreachable(a);
    expect(health.healthState(a)).toBe('recent');
    for (let round = 0; round < 20; round++) expect(choose(a)).toEqual(['A']);
  });
});

describe('an offer that has succeeded since it failed', () => {
  const a = offer({ provider: 'A', price: 0.01 });
  const b = offer({ provider: 'B', price: 10 });

  test('comes after those without an outage in the last 30 seconds', () => {
    const { health, choose, now } = setUp(1_000);
    health.unreachable(a);
    now.advance(1_000);
    health.succeeded(a, { ...SAMPLE, durationMs: 0 });
    expect(health.healthState(a)).toBe('recent');
    for (let round = 0; round < 20; round++) expect(choose(a, b)).toEqual(['B', 'A']);
    now.advance(29_000);
    expect(choose(a, b)).toEqual(['A', 'B']);
  });
});

describe('when every offer has failed', () => {
  const only = offer({ provider: 'Only' });
  const other = offer({ provider: 'Other' });

  test('the resting ones are tried all the same', () => {
    const { choose, fail } = setUp();
    fail(only, 1);
    expect(choose(only)).toEqual(['Only']);
    fail(other, 1);
    expect(choose(only, other).sort()).toEqual(['Only', 'Other']);
  });

  test('one that failed too often in a row is not', () => {
    const { health, choose, fail, now } = setUp();
    fail(only, OPEN_AFTER - 1);
    expect(choose(only)).toEqual(['Only']);
    fail(only);
    expect(choose(only)).toEqual([]);
    fail(other, OPEN_AFTER);
    expect(choose(only, other)).toEqual([]);
    now.advance(COOLDOWN);
    expect(choose(only)).toEqual(['Only']);
    expect(choose(only)).toEqual([]);
    health.succeeded(only, { ...SAMPLE, durationMs: 0 });
    expect(choose(only)).toEqual(['Only']);
  });

  test('failures between successes are not in a row', () => {
    const { health, choose, fail } = setUp();
    for (let round = 0; round < 5; round++) {
      fail(only, OPEN_AFTER - 1);
      health.succeeded(only, { ...SAMPLE, durationMs: 60_000 });
    }
    expect(choose(only)).toEqual(['Only']);
  });
});

describe('the time until a retry', () => {
  const a = offer({ provider: 'A' });
  const b = offer({ provider: 'B' });

  test('is that of the offer that may be tried first', () => {
    const { health, now, fail } = setUp();
    fail(a);
    now.advance(10_000);
    fail(b);
    expect(health.retryAfterS([a, b])).toBe(20);
    expect(health.retryAfterS([b])).toBe(30);
    now.advance(19_500);
    expect(health.retryAfterS([a, b])).toBe(1);
  });

  test('is that of a probe while one is out', () => {
    const { health, now, choose, fail } = setUp();
    fail(a, OPEN_AFTER);
    now.advance(COOLDOWN);
    expect(choose(a)).toEqual(['A']);
    now.advance(2_000);
    expect(health.retryAfterS([a])).toBe(8);
  });

  test('is the least that can be said when none rests', () => {
    const { health, fail } = setUp();
    expect(health.retryAfterS([a])).toBe(1);
    expect(health.retryAfterS([])).toBe(1);
    fail(a);
    expect(health.retryAfterS([a, b])).toBe(1);
  });
});

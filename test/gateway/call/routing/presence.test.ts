import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { clock, names, offer, seeded } from './offers.ts';

const [a, b] = [offer({ provider: 'A', price: 1 }), offer({ provider: 'B', price: 100 })];
const SAMPLE = { firstByteMs: 1, durationMs: 1, completionTokens: 1 };

function world(away: readonly string[]) {
  const now = clock();
  const health = createHealth({
    now,
    cooldownMs: 10_000,
    failuresMax: 10,
    present: ({ provider }) => !away.includes(provider.name),
  });
  const router = createRouter({ health, random: seeded(1), attemptsMax: 3, now });
  return { now, health, choose: (offers = [a, b]) => names(router.choose(offers, NO_PREFERENCES, null)) };
}

describe('a provider that is away', () => {
  test('is passed over while there are others, whatever they cost', () => {
    const { health, choose } = world(['A']);
    expect(health.healthState(a)).toBe('resting');
    expect(health.available(a)).toBe(false);
    for (let call = 0; call < 20; call += 1) expect(choose()).toEqual(['B', 'A']);
  });

  test('is tried when there are no others', () => {
    expect(world(['A']).choose([a])).toEqual(['A']);
    expect(world(['A', 'B']).choose().sort()).toEqual(['A', 'B']);
  });

  test('is waited for although many calls broke with its connection', () => {
    const { now, health, choose } = world(['A']);
    for (let call = 0; call < 20; call += 1) health.failed(a, 'payer', now());
    expect(choose([a])).toEqual(['A']);
  });

  test('is not tried any more after many calls waited in vain', () => {
    const { health, choose } = world(['A']);
    for (let call = 0; call < 10; call += 1) health.unreachable(a);
    expect(choose([a])).toEqual([]);
  });
});

describe('a provider that returned', () => {
  test('is tried at once by one call, and by all when that one succeeded', () => {
    const { now, health, choose } = world([]);
    for (let call = 0; call < 10; call += 1) health.unreachable(a);
    expect(choose([a])).toEqual([]);
    health.returned('id-A');
    expect(health.healthState(a)).toBe('probe');
    expect(choose([a])).toEqual(['A']);
    expect(health.healthState(a)).toBe('resting');
    now.advance(5);
    health.succeeded(a, SAMPLE);
    expect(health.available(a)).toBe(true);
  });

  test('rests again when that one failed', () => {
    const { health } = world([]);
    health.unreachable(a);
    health.returned('id-A');
    health.unreachable(a);
    expect(health.healthState(a)).toBe('resting');
  });

  test('is not taken for down by calls that broke with its last connection', () => {
    const { now, health, choose } = world([]);
    const beganAt = now();
    now.advance(5);
    health.returned('id-A');
    for (let call = 0; call < 10; call += 1) {
      health.failed(a, `payer-${call}`, beganAt);
      health.blamed(a, `payer-${call}`, beganAt, true);
    }
    expect(health.healthState(a)).toBe('good');
    expect(health.stats(a)).toMatchObject({ failures: 10, uptime: 0 });
    health.failed(a, 'payer', now());
    expect(health.healthState(a, 'payer')).toBe('resting');
    expect(choose([a])).toEqual(['A']);
  });

  test('changes nothing for other providers, nor for what is well', () => {
    const { health } = world([]);
    health.unreachable(b);
    health.returned('id-A');
    expect(health.healthState(a)).toBe('good');
    expect(health.healthState(b)).toBe('resting');
  });
});

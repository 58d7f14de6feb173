import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { isOwn, type Offer } from '../../../../src/server/catalog/offers.ts';
import { NO_PREFERENCES } from '../../../../src/gateway/call/preferences.ts';
import { planAttempts } from '../../../../src/gateway/call/routing/attempt-plan.ts';
import { createRouter } from '../../../../src/gateway/call/routing/router.ts';
import { offer, names, seeded } from './offers.ts';

// Where anybody may sell, the offer of a stranger has to serve some calls before it counts as one that works.

const stranger = (provider: string, price: number): Offer => ({
  ...offer({ provider, price }),
  endpoint: { kind: 'tunnel', provider: `id-${provider}`, basePath: '/model/acme%2Fsmall' },
});
const honest = stranger('honest', 5);
const free = stranger('free', 0);
const other = stranger('other', 0);
const SAMPLE = { firstByteMs: 1, durationMs: 2, completionTokens: 1 };

function world(isStranger = (one: Offer): boolean => !isOwn(one)) {
  const health = createHealth({ now: () => 1_000_000, cooldownMs: 30_000, isStranger });
  const router = createRouter({ health, random: seeded(1), attemptsMax: 3 });
  const choose = (offers: readonly Offer[], more = {}) =>
    names(router.choose(offers, { ...NO_PREFERENCES, ...more }, null));
  const serves = (one: Offer, calls = 3) => {
    for (let call = 0; call < calls; call++) health.succeeded(one, SAMPLE);
  };
  /** Of so many calls, those that go to this provider first. */
  const firsts = (offers: readonly Offer[], provider: string, calls = 2_000) =>
    Array.from({ length: calls }, () => choose(offers)[0]).filter((first) => first === provider).length;
  return { health, choose, serves, firsts };
}

describe('an offer of a stranger', () => {
  test('comes after one that has served calls, whatever it costs, but for some calls', () => {
    const { serves, firsts } = world();
    serves(honest);
    const tries = firsts([honest, free], 'free');
    expect(tries).toBeGreaterThan(50);
    expect(tries).toBeLessThan(200);
  });

  test('has no more chance together with many others', () => {
    const { serves, firsts } = world();
    serves(honest);
    const many = Array.from({ length: 50 }, (_, at) => stranger(`free-${at}`, 0));
    expect(firsts([honest, ...many], 'honest')).toBeGreaterThan(1_800);
  });

  test('comes after the operator’s own', () => {
    const own = offer({ provider: 'own', price: 9 });
    expect(world().firsts([own, free], 'own')).toBeGreaterThan(1_800);
  });

  test('has its place by its price after three calls, and not after two', () => {
    const { serves, firsts } = world();
    serves(honest);
    serves(free, 2);
    expect(firsts([honest, free], 'free')).toBeLessThan(200);
    serves(free, 1);
    expect(firsts([honest, free], 'free')).toBeGreaterThan(1_800);
  });

  test('is tried less often the more it failed', () => {
    const { health, serves, firsts } = world();
    serves(honest);
    for (let call = 0; call < 9; call++) health.blamed(free, 'somebody', 0, false);
    expect(firsts([honest, free], 'free')).toBeLessThan(40);
  });

  test('is tried after others that are not proven while it has four calls', () => {
    const { health, firsts } = world();
    for (let call = 0; call < 4; call++) health.tried(free, 1);
    expect(firsts([free, stranger('dear', 3)], 'free')).toBe(0);
    health.tried(free, -1);
    expect(firsts([free, stranger('dear', 3)], 'free')).toBeGreaterThan(1_800);
  });

  test('comes first for who sorts by price', () => {
    const { choose, serves } = world();
    serves(honest);
    expect(choose([honest, free], { sort: 'price' })).toEqual(['free', 'honest']);
  });

  test('is as good as others where the operator says who may sell', () => {
    const { serves, firsts } = world(() => false);
    serves(honest);
    expect(firsts([honest, free], 'free')).toBeGreaterThan(1_800);
  });
});

test('a prompt goes to two offers at most that are not proven', () => {
  const { health, serves, choose } = world();
  const third = stranger('third', 0);
  serves(honest);
  const chosen = choose([free, other, third, honest], { sort: 'price' });
  expect(chosen).toHaveLength(3);
  expect(chosen.at(-1)).toBe('honest');
  // Of all models together.
  const candidates = [free, other, third, honest].map((one) => ({ offer: one, price: one.price, estimate: 1n }));
  const plan = planAttempts(
    [candidates.slice(0, 1), candidates.slice(1)],
    9,
    () => false,
    (candidate) => health.isProven(candidate.offer),
  );
  expect(names(plan.map((candidate) => candidate.offer))).toEqual(['free', 'other', 'honest']);
});

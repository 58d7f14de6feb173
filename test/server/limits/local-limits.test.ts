import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RatePolicy, createLocalLimiter } from '../../../src/server/limits/rate-limiter.ts';

const POLICY: RatePolicy = { requestsPerMinute: 60, burst: 20, tokensPerMinute: 6_000 };
const ONE = { requests: 1, tokens: 0 };

function world(options: { keysMax?: number } = {}) {
  const clock = { now: 1_700_000_000_000 };
  return { clock, limiter: createLocalLimiter({ now: () => clock.now, ...options }) };
}

/** The plain token bucket, as the oracle. */
function createOracle(policy: RatePolicy, start: number) {
  const sizes = { requests: policy.requestsPerMinute + policy.burst, tokens: policy.tokensPerMinute };
  const rates = { requests: policy.requestsPerMinute / 60_000, tokens: policy.tokensPerMinute / 60_000 };
  const level = { ...sizes };
  let last = start;
  return (at: number, amount: { requests: number; tokens: number }): boolean => {
    for (const name of ['requests', 'tokens'] as const)
      level[name] = Math.min(sizes[name], level[name] + (at - last) * rates[name]);
    last = at;
    const cost = { requests: Math.min(amount.requests, sizes.requests), tokens: Math.min(amount.tokens, sizes.tokens) };
    if (level.requests < cost.requests - 1e-6 || level.tokens < cost.tokens - 1e-6) return false;
    level.requests -= cost.requests;
    level.tokens -= cost.tokens;
    return true;
  };
}

describe('the limits of one process', () => {
  it('let the rate and the burst through at once, then one a second', () => {
    const { clock, limiter } = world();
    for (let left = 79; left >= 0; left -= 1) {
      const { allowed, requests, retryAfterS } = limiter.take('key', POLICY, ONE);
      expect([allowed, requests.remaining, requests.limit, retryAfterS]).toEqual([true, left, 80, 0]);
    }
    const refused = limiter.take('key', POLICY, ONE);
    expect(refused).toMatchObject({ allowed: false, requests: { limit: 80, remaining: 0, resetS: 80 } });
    expect(refused.retryAfterS).toBeCloseTo(1);
    clock.now += 999;
    expect(limiter.take('key', POLICY, ONE).allowed).toBe(false);
    clock.now += 1;
    expect(limiter.take('key', POLICY, ONE).allowed).toBe(true);
    expect(limiter.take('key', POLICY, ONE).allowed).toBe(false);
  });

  it('count tokens beside requests, and take neither when one is refused', () => {
    const { clock, limiter } = world();
    expect(limiter.take('key', POLICY, { requests: 1, tokens: 5_000 })).toMatchObject({
      allowed: true,
      tokens: { limit: 6_000, remaining: 1_000, resetS: 50 },
    });
    const refused = limiter.take('key', POLICY, { requests: 1, tokens: 2_000 });
    expect(refused).toMatchObject({ allowed: false, requests: { remaining: 79 }, tokens: { remaining: 1_000 } });
    expect(refused.retryAfterS).toBeCloseTo(10);
    expect(limiter.take('key', POLICY, ONE)).toMatchObject({ allowed: true, requests: { remaining: 78 } });
    clock.now += refused.retryAfterS * 1_000;
    expect(limiter.take('key', POLICY, { requests: 1, tokens: 2_000 }).allowed).toBe(true);
  });

  it('let a request that is larger than the bucket through when the bucket is full', () => {
    const { limiter } = world();
    expect(limiter.take('key', POLICY, { requests: 1, tokens: 1_000_000 })).toMatchObject({
      allowed: true,
      tokens: { remaining: 0 },
    });
    expect(limiter.take('key', POLICY, { requests: 1, tokens: 1 }).allowed).toBe(false);
  });

  it('keep keys apart', () => {
    const { limiter } = world();
    for (let round = 0; round < 80; round += 1) limiter.take('one', POLICY, ONE);
    expect(limiter.take('one', POLICY, ONE).allowed).toBe(false);
    expect(limiter.take('two', POLICY, ONE)).toMatchObject({ allowed: true, requests: { remaining: 79 } });
  });

  it('decide as a plain token bucket does', () => {
    const policies = fc.record({
      requestsPerMinute: fc.integer({ min: 1, max: 6_000 }),
      burst: fc.nat(50),
      tokensPerMinute: fc.integer({ min: 1, max: 1_000_000 }),
    });
    // Whole fifths of a second, so that no decision hangs on the last bit of a division.
    const steps = fc.array(
      fc.record({ waitMs: fc.nat(100).map((n) => n * 200), requests: fc.nat(2), tokens: fc.nat(20_000) }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(policies, steps, (policy, takes) => {
        const { clock, limiter } = world();
        const oracle = createOracle(policy, clock.now);
        for (const { waitMs, ...amount } of takes) {
          clock.now += waitMs;
          const { allowed, requests, tokens, retryAfterS } = limiter.take('key', policy, amount);
          expect(allowed).toBe(oracle(clock.now, amount));
          expect(retryAfterS > 0).toBe(!allowed);
          for (const window of [requests, tokens]) {
            expect(window.remaining).toBeGreaterThanOrEqual(0);
            expect(window.remaining).toBeLessThanOrEqual(window.limit);
            expect(window.resetS).toBeGreaterThanOrEqual(0);
          }
        }
      }),
      { numRuns: process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 300 },
    );
  });

  it.each([10 * 60_000, 3 * 86_400_000])(
    'keep what they decided: a clock that was set back by %d ms costs an empty bucket, and no more',
    (shift) => {
      const { clock, limiter } = world();
      for (let round = 0; round < 80; round += 1) limiter.take('key', POLICY, ONE);
      clock.now -= shift;
      expect(limiter.take('key', POLICY, ONE)).toMatchObject({ allowed: false, retryAfterS: 1 });
      clock.now += 1_000;
      expect(limiter.take('key', POLICY, ONE).allowed).toBe(true);
      expect(limiter.take('key', POLICY, ONE).allowed).toBe(false);
    },
  );

  it('let a key whose policy has become smaller go on after one interval of the new one', () => {
    const { clock, limiter } = world();
    for (let round = 0; round < 80; round += 1) limiter.take('key', POLICY, ONE);
    const smaller = { ...POLICY, requestsPerMinute: 60, burst: 0 };
    expect(limiter.take('key', smaller, ONE).allowed).toBe(false);
    clock.now += 1_000;
    expect(limiter.take('key', smaller, ONE).allowed).toBe(true);
  });

  it('give at once what a raised rate has more, and no more than an empty bucket at a lowered one', () => {
    const { clock, limiter } = world();
    for (let round = 0; round < 80; round += 1) limiter.take('key', POLICY, { requests: 1, tokens: 75 });
    expect(limiter.take('key', POLICY, { requests: 1, tokens: 1 }).allowed).toBe(false);
    const raised = { requestsPerMinute: 200, burst: 0, tokensPerMinute: 6_100 };
    expect(limiter.take('key', raised, { requests: 120, tokens: 100 })).toMatchObject({
      allowed: true,
      requests: { remaining: 0 },
      tokens: { remaining: 0 },
    });
    expect(limiter.take('key', raised, ONE).allowed).toBe(false);
    const lowered = { requestsPerMinute: 6, burst: 0, tokensPerMinute: 6_100 };
    expect(limiter.take('key', lowered, ONE)).toMatchObject({ allowed: false, retryAfterS: 10 });
    clock.now += 10_000;
    expect(limiter.take('key', lowered, ONE).allowed).toBe(true);
    expect(limiter.take('key', raised, { requests: 194, tokens: 0 }).allowed).toBe(true);
    expect(limiter.take('key', raised, ONE).allowed).toBe(false);
  });

  it('forget keys that are idle, and stay within their number when none is', () => {
    const { clock, limiter } = world({ keysMax: 5_000 });
    for (let key = 0; key < 3_000; key += 1) limiter.take(`idle-${key}`, POLICY, ONE);
    clock.now += 60_000;
    for (let key = 0; key < 4_000; key += 1) limiter.take(`busy-${key}`, POLICY, ONE);
    expect(limiter.size()).toBeLessThanOrEqual(5_000);
    expect(limiter.take('busy-0', POLICY, ONE).requests.remaining).toBe(78);
    for (let key = 0; key < 50_000; key += 1) limiter.take(`flood-${key}`, POLICY, ONE);
    expect(limiter.size()).toBeLessThanOrEqual(5_000);
  });
});

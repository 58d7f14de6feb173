import { randomUUID } from 'node:crypto';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { spendTokens } from '#limits';
import type { RatePolicy } from '../../../src/server/limits/rate-limiter.ts';
import { createRateLimiter } from '../../../src/server/limits/redis-limiter.ts';
import { connectRedis } from '../../../src/foundation/store/redis.ts';
import { whenReady } from './redis-ready.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const POLICY: RatePolicy = { requestsPerMinute: 60, burst: 20, tokensPerMinute: 6_000 };
const ONE = { requests: 1, tokens: 0 };

/**
 * A gateway's limiter with a connection of its own. Redis may take long here: these tests are about the limits, on
 * a busy machine.
 */
async function gateway(now = Date.now) {
  const redis = await connectRedis(inject('redisUrl'), { commandTimeoutMs: 5_000 });
  onTestFinished(() => redis.disconnect());
  await whenReady(redis);
  return { redis, limiter: createRateLimiter({ redis, now, timeoutMs: 5_000 }) };
}

describe('limits shared through Redis', () => {
  it('are one limit for all gateways', async () => {
    const gateways = await Promise.all([gateway(), gateway(), gateway()]);
    const key = randomUUID();
    const decisions = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => gateways[n % 3]!.limiter.take(key, POLICY, ONE)),
    );
    // 80, and one more for each second that this took.
    const allowed = decisions.filter((decision) => decision.allowed).length;
    expect(allowed).toBeGreaterThanOrEqual(80);
    expect(allowed).toBeLessThanOrEqual(83);
    const refused = decisions.find((decision) => !decision.allowed)!;
    expect(refused.retryAfterS).toBeGreaterThan(0);
    expect(refused.retryAfterS).toBeLessThanOrEqual(1);
    expect(refused.requests).toMatchObject({ limit: 80, remaining: 0 });
  });

  it.each([10 * 60, 3 * 86_400])(
    'go on after one interval where the clock of Redis was set back by %d s',
    async (shiftS) => {
      const { redis, limiter } = await gateway();
      const key = randomUUID();
      for (let round = 0; round < 79; round += 1) await limiter.take(key, POLICY, ONE);
      const name = `tollgate:rate:${key}`;
      // What such a clock leaves: a time that is as far ahead as the clock was.
      const ahead = Number(await redis.hget(name, 'r')) + shiftS * 1_000_000;
      await redis.hset(name, 'r', ahead);
      expect(await limiter.take(key, POLICY, ONE)).toMatchObject({ allowed: false, retryAfterS: 1 });
      const [s, us] = (await redis.time()).map(Number);
      expect(Number(await redis.hget(name, 'r'))).toBeLessThanOrEqual(s! * 1_000_000 + us! + 80_000_000);
    },
  );

  it('give at once what a raised rate has more', async () => {
    const [one, two] = await Promise.all([gateway(), gateway()]);
    const key = randomUUID();
    const slow: RatePolicy = { requestsPerMinute: 2, burst: 0, tokensPerMinute: 6_000 };
    for (let round = 0; round < 2; round += 1)
      expect((await one.limiter.take(key, slow, ONE)).allowed, `${round}`).toBe(true);
    expect((await two.limiter.take(key, slow, ONE)).allowed).toBe(false);
    const raised = { ...slow, requestsPerMinute: 5 };
    const decisions = await Promise.all([one, two, one].map(async ({ limiter }) => limiter.take(key, raised, ONE)));
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
    expect((await two.limiter.take(key, raised, ONE)).allowed).toBe(false);
  });

  it('report what other gateways have taken', async () => {
    const [one, two] = await Promise.all([gateway(), gateway()]);
    const key = randomUUID();
    for (let round = 0; round < 5; round += 1) await one.limiter.take(key, POLICY, { requests: 1, tokens: 500 });
    const { requests, tokens } = await two.limiter.take(key, POLICY, { requests: 1, tokens: 500 });
    expect(requests.remaining).toBeGreaterThanOrEqual(74);
    expect(requests.remaining).toBeLessThanOrEqual(76);
    expect(tokens.remaining).toBeGreaterThanOrEqual(3_000);
    expect(tokens.remaining).toBeLessThan(3_500);
    expect((await two.limiter.take(key, POLICY, { requests: 1, tokens: 5_000 })).allowed).toBe(false);
  });

  it('count a call that used more tokens than any gateway has left', async () => {
    const [one, two] = await Promise.all([gateway(), gateway()]);
    const key = randomUUID();
    const policy: RatePolicy = { requestsPerMinute: 1_000, burst: 0, tokensPerMinute: 600 };
    await one.limiter.take(key, policy, { requests: 1, tokens: 400 });
    await two.limiter.take(key, policy, { requests: 1, tokens: 100 });
    // Gateway two thinks that 500 are left. Redis knows that it is 100.
    spendTokens(two.limiter, key, policy, 550);
    await expect
      .poll(async () => (await one.limiter.take(key, policy, { requests: 0, tokens: 0 })).tokens.remaining)
      .toBeLessThan(100);
  });

  it('go by the clock of Redis, whatever the gateways think', async () => {
    const [ahead, behind] = await Promise.all([
      gateway(() => Date.now() + 3_600_000),
      gateway(() => Date.now() - 3_600_000),
    ]);
    const key = randomUUID();
    for (let round = 0; round < 40; round += 1) {
      expect((await ahead.limiter.take(key, POLICY, ONE)).allowed).toBe(true);
      expect((await behind.limiter.take(key, POLICY, ONE)).allowed).toBe(true);
    }
    const last = await behind.limiter.take(key, POLICY, { requests: 10, tokens: 0 });
    expect(last.allowed).toBe(false);
    expect(last.requests.resetS).toBeLessThanOrEqual(80);
  });

  it('refill with the time of Redis', async () => {
    const [one, two] = await Promise.all([gateway(), gateway()]);
    const key = randomUUID();
    const policy: RatePolicy = { requestsPerMinute: 600, burst: 0, tokensPerMinute: 1 };
    const begun = performance.now();
    expect((await one.limiter.take(key, policy, { requests: 600, tokens: 0 })).allowed).toBe(true);
    expect((await two.limiter.take(key, policy, { requests: 3, tokens: 0 })).retryAfterS).toBeLessThanOrEqual(0.3);
    while (!(await two.limiter.take(key, policy, { requests: 3, tokens: 0 })).allowed)
      expect(performance.now() - begun).toBeLessThan(atThisLoad(2_000));
    expect(performance.now() - begun).toBeGreaterThan(295);
  });

  it('leave nothing in Redis for longer than they matter', async () => {
    const { redis, limiter } = await gateway();
    const key = randomUUID();
    await limiter.take(key, POLICY, { requests: 30, tokens: 0 });
    const ttlMs = await redis.pttl(`tollgate:rate:${key}`);
    expect(ttlMs).toBeGreaterThan(25_000);
    expect(ttlMs).toBeLessThanOrEqual(31_000);
  });

  it('go on when Redis forgot the script', async () => {
    const { redis, limiter } = await gateway();
    const key = randomUUID();
    await limiter.take(key, POLICY, ONE);
    await redis.script('FLUSH');
    expect(await limiter.take(key, POLICY, ONE)).toMatchObject({ allowed: true, requests: { remaining: 78 } });
  });

  it('are local for a key that Redis cannot take', async () => {
    const { redis, limiter } = await gateway();
    const key = randomUUID();
    await redis.set(`tollgate:rate:${key}`, 'somebody else wrote this');
    for (let round = 0; round < 80; round += 1) expect((await limiter.take(key, POLICY, ONE)).allowed).toBe(true);
    expect((await limiter.take(key, POLICY, ONE)).allowed).toBe(false);
  });
});

import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRateLimiter } from '../../../src/gateway/limits/redis-limiter.ts';
import type { RateDecision, RatePolicy } from '../../../src/gateway/limits/limiter.ts';
import { connectRedis } from '../../../src/store/redis.ts';
import { startRedis } from '../../support/redis.ts';
import { whenReady } from './redis-ready.ts';

const POLICY: RatePolicy = { requestsPerMinute: 60, burst: 20, tokensPerMinute: 6_000 };
const ONE = { requests: 1, tokens: 0 };

async function world() {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = await connectRedis(server.url);
  onTestFinished(() => redis.disconnect());
  await whenReady(redis);
  const changes: boolean[] = [];
  const limiter = createRateLimiter({ redis, now: Date.now, onChange: (shared) => changes.push(shared) });
  /** One take, with the milliseconds it took. */
  const take = async (key: string): Promise<RateDecision & { tookMs: number }> => {
    const begun = performance.now();
    const decision = await limiter.take(key, POLICY, ONE);
    return { ...decision, tookMs: performance.now() - begun };
  };
  /** Takes with ever new keys until limits are shared again; returns after how many milliseconds. */
  const untilShared = async (): Promise<number> => {
    const begun = performance.now();
    while (changes.at(-1) !== true) {
      expect(performance.now() - begun).toBeLessThan(5_000);
      await take(randomUUID());
      await new Promise((resolve) => setImmediate(resolve));
    }
    return performance.now() - begun;
  };
  return { server, redis, changes, take, untilShared };
}

describe('when Redis goes away', () => {
  it('frozen: a request waits 50 ms at most, limits go on locally where they were, and are shared again after the thaw', async () => {
    const { server, redis, changes, take, untilShared } = await world();
    const key = randomUUID();
    for (let round = 0; round < 50; round += 1) await take(key);

    server.freeze();
    const first = await take(key);
    expect(first.allowed).toBe(true);
    expect(first.tookMs).toBeGreaterThan(20);
    expect(first.tookMs).toBeLessThan(250);
    expect(changes).toEqual([false]);
    // 51 are taken, so 29 are left, and one for each second that passes.
    let allowed = 0;
    for (let round = 0; round < 60; round += 1) {
      const { allowed: passed, tookMs } = await take(key);
      if (passed) allowed += 1;
      expect(tookMs).toBeLessThan(20);
    }
    expect(allowed).toBeGreaterThanOrEqual(28);
    expect(allowed).toBeLessThanOrEqual(31);

    server.thaw();
    await untilShared();
    const later = randomUUID();
    await take(later);
    expect(await redis.exists(`tollgate:rate:${later}`)).toBe(1);
  });

  it('frozen in the middle of many requests: all are decided', async () => {
    const { server, take } = await world();
    const begun = performance.now();
    const running = Array.from({ length: 500 }, () => take(randomUUID()));
    server.freeze();
    const decisions = await Promise.all(running);
    expect(decisions.every((decision) => decision.allowed)).toBe(true);
    expect(performance.now() - begun).toBeLessThan(1_000);
    server.thaw();
  });

  it('killed and started again: never an exception, shared again within 5 s', async () => {
    const { server, changes, take, untilShared } = await world();
    const key = randomUUID();
    await take(key);
    const running = Array.from({ length: 100 }, () => take(key));
    await server.kill9();
    const decisions = [...(await Promise.all(running)), await take(key)];
    expect(changes).toEqual([false]);
    expect(decisions.filter((decision) => decision.allowed).length).toBeLessThanOrEqual(82);
    await server.restart();
    await untilShared();
  });

  it('flushed: what this gateway has let through stays counted', async () => {
    const { server, take, changes } = await world();
    const key = randomUUID();
    for (let round = 0; round < 70; round += 1) expect((await take(key)).allowed).toBe(true);
    await server.flush();
    let allowed = 0;
    for (let round = 0; round < 80; round += 1) if ((await take(key)).allowed) allowed += 1;
    expect(allowed).toBeGreaterThanOrEqual(10);
    expect(allowed).toBeLessThanOrEqual(13);
    expect(changes).toEqual([]);
  });

  it('not there from the start: limits are local, and shared once it comes', async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    await server.kill9();
    const errors: Error[] = [];
    const redis = await connectRedis(server.url, { onError: (error) => errors.push(error) });
    onTestFinished(() => redis.disconnect());
    const changes: boolean[] = [];
    const limiter = createRateLimiter({ redis, now: Date.now, onChange: (shared) => changes.push(shared) });
    expect(await limiter.take('key', POLICY, ONE)).toMatchObject({ allowed: true, requests: { remaining: 79 } });
    await server.restart();
    const begun = performance.now();
    while (changes.at(-1) !== true) {
      expect(performance.now() - begun).toBeLessThan(5_000);
      await limiter.take('key', POLICY, ONE);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(errors.length).toBeGreaterThan(0);
  });
});

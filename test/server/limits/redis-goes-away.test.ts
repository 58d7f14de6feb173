import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RatePolicy } from '../../../src/server/limits/rate-limiter.ts';
import { createRateLimiter } from '../../../src/server/limits/redis-limiter.ts';
import { connectRedis } from '../../../src/foundation/store/redis.ts';
import { startRedis, type Redis } from '../../support/redis.ts';
import { whenReady } from './redis-ready.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

const POLICY: RatePolicy = { requestsPerMinute: 60, burst: 20, tokensPerMinute: 6_000 };
const ONE = { requests: 1, tokens: 0 };

async function world({ server, timeoutMs = 50 }: { server?: Redis; timeoutMs?: number } = {}) {
  const running = server ?? (await startRedis());
  onTestFinished(() => running.stop());
  const errors: Error[] = [];
  // The limiter must not lean on the time limit of the connection.
  const redis = await connectRedis(running.url, { commandTimeoutMs: 20_000, onError: (error) => errors.push(error) });
  onTestFinished(() => redis.disconnect());
  if (!server) await whenReady(redis);
  const changes: boolean[] = [];
  const begun = Date.now();
  const limiter = createRateLimiter({ redis, now: Date.now, timeoutMs, onChange: (shared) => changes.push(shared) });
  const take = async (key: string) => limiter.take(key, POLICY, ONE);
  return {
    server: running,
    redis,
    errors,
    changes,
    limiter,
    take,
    /** Requests that one key may have made since the start: what its bucket held, and what was refilled. */
    most: () => 80 + Math.ceil((Date.now() - begun) / 1_000),
    /** Takes with ever new keys until limits are shared again: 5 s at most. */
    async untilShared() {
      const since = performance.now();
      while (changes.at(-1) !== true) {
        expect(performance.now() - since).toBeLessThan(atThisLoad(5_000));
        await take(randomUUID());
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

describe('when Redis goes away', () => {
  it('frozen: one request waits a moment, limits go on locally where they were, and are shared again after the thaw', async () => {
    const { server, redis, changes, limiter, take, most, untilShared } = await world();
    const key = randomUUID();
    let allowed = 0;
    const count = async () => {
      if ((await take(key)).allowed) allowed += 1;
    };
    for (let round = 0; round < 50; round += 1) await count();

    server.freeze();
    const asked = performance.now();
    await count();
    expect(performance.now() - asked).toBeLessThan(atThisLoad(1_000));
    expect(changes.at(-1)).toBe(false);
    // From now on nobody waits.
    expect(limiter.take(randomUUID(), POLICY, ONE)).not.toBeInstanceOf(Promise);
    for (let round = 0; round < 60; round += 1) await count();
    expect(allowed).toBeGreaterThanOrEqual(80);
    expect(allowed).toBeLessThanOrEqual(most());

    server.thaw();
    await untilShared();
    let later = randomUUID();
    for (let round = 0; round < 20 && (await redis.exists(`tollgate:rate:${later}`)) === 0; round += 1)
      await take((later = randomUUID()));
    expect(await redis.exists(`tollgate:rate:${later}`)).toBe(1);
  });

  it('frozen in the middle of many requests: all are decided', async () => {
    const { server, take } = await world();
    const begun = performance.now();
    const running = Array.from({ length: 500 }, () => take(randomUUID()));
    server.freeze();
    const decisions = await Promise.all(running);
    server.thaw();
    expect(decisions.every((decision) => decision.allowed)).toBe(true);
    expect(performance.now() - begun).toBeLessThan(atThisLoad(2_000));
  });

  it('killed and started again: never an exception, shared again within 5 s', async () => {
    const { server, changes, take, most, untilShared } = await world();
    const key = randomUUID();
    await take(key);
    const running = Array.from({ length: 100 }, () => take(key));
    await server.kill9();
    const decisions = await Promise.all(running);
    // Redis may have answered all of them before it died, and a key whose limit is used up does not ask it again.
    await take(randomUUID());
    expect(changes.at(-1)).toBe(false);
    expect(decisions.filter((decision) => decision.allowed).length).toBeLessThan(most());
    await server.restart();
    await untilShared();
  });

  it('flushed: what this gateway has let through stays counted', async () => {
    const { server, take, most, changes } = await world({ timeoutMs: 10_000 });
    const key = randomUUID();
    let allowed = 0;
    for (let round = 0; round < 150; round += 1) {
      if (round === 70) await server.flush();
      if ((await take(key)).allowed) allowed += 1;
    }
    expect(allowed).toBeGreaterThanOrEqual(80);
    expect(allowed).toBeLessThanOrEqual(most());
    expect(changes).toEqual([]);
  });

  it('not there from the start: limits are local, and shared once it comes', async () => {
    const server = await startRedis();
    await server.kill9();
    const { take, untilShared, errors } = await world({ server });
    expect(await take('key')).toMatchObject({ allowed: true, requests: { remaining: 79 } });
    await expect.poll(() => errors.length, { timeout: 30_000 }).toBeGreaterThan(0);
    await server.restart();
    await untilShared();
  });
});

describe('while this process is busy', () => {
  it('a reply that arrived in time counts, however late it is read', async () => {
    // Redis answers within these on a busy machine, too.
    const timeoutMs = 500;
    const { redis, take, changes } = await world({ timeoutMs });
    const key = randomUUID();
    await take(key);
    // Written now, answered while nothing is read here.
    const running = take(key);
    await Promise.resolve();
    const until = performance.now() + 3 * timeoutMs;
    while (performance.now() < until);
    expect((await running).requests.remaining).toBe(78);
    expect(changes).toEqual([]);
    expect(await redis.exists(`tollgate:rate:${key}`)).toBe(1);
  });
});

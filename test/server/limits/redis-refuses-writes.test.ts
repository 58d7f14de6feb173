import { expect, onTestFinished, test } from 'vitest';
import type { RatePolicy } from '../../../src/server/limits/rate-limiter.ts';
import { createRateLimiter } from '../../../src/server/limits/redis-limiter.ts';
import { connectRedis } from '../../../src/foundation/store/redis.ts';
import { startRedis } from '../../support/redis.ts';
import { whenReady } from './redis-ready.ts';

const POLICY: RatePolicy = { requestsPerMinute: 60_000, burst: 20, tokensPerMinute: 6_000 };

test('a Redis that answers but may not write is not taken back until it may', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = await connectRedis(server.url, { commandTimeoutMs: 5_000 });
  onTestFinished(() => redis.disconnect());
  await whenReady(redis);
  let clock = 1_000_000;
  const changes: boolean[] = [];
  const limiter = createRateLimiter({
    redis,
    now: () => clock,
    timeoutMs: 2_000,
    onChange: (shared) => changes.push(shared),
  });
  const take = () => limiter.take('key', POLICY, { requests: 1, tokens: 0 });

  await take();
  expect(changes).toEqual([]);
  await redis.config('SET', 'maxmemory', '1');
  await take();
  for (let probe = 0; probe < 5; probe += 1) {
    clock += 1_000;
    expect((await take()).allowed).toBe(true);
    // The probe's two commands have been answered when a later one has.
    for (let command = 0; command < 3; command += 1) await redis.ping();
  }
  expect(changes).toEqual([false]);

  await redis.config('SET', 'maxmemory', '0');
  while (changes.length < 2) {
    clock += 1_000;
    await take();
    await redis.ping();
  }
  expect(changes).toEqual([false, true]);
});

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startRedis, type Redis } from '../support/redis.ts';
import { ask, startSpine, type Spine } from '../support/spine.ts';
import { atThisLoad } from '../support/at-this-load.ts';

// Redis goes away in the middle of it all: no call fails for it, no money is touched, and the limits go on.

let redis: Redis;
let gateways: Spine[];
beforeAll(async () => {
  redis = await startRedis();
  const toml = '[limits]\nrequests_per_minute = 60\nburst = 20\n';
  const first = await startSpine({ redisUrl: redis.url, toml });
  gateways = [first];
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.stop();
  await redis.stop();
});
afterEach(async () => {
  expect(await gateways[0]!.faults()).toEqual([]);
});

interface Burst {
  readonly passed: number;
  readonly slowest: number;
  /** How long it took, in seconds: the key gets one more call for each. */
  readonly seconds: number;
}

/** So many calls at once with a fresh key; how many passed, and how long the slowest took. */
async function burst(name: string, count: number): Promise<Burst> {
  const spine = gateways[0]!;
  const { key } = await spine.tenant(name, '1');
  let slowest = 0;
  const started = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: count }, async () => {
      const begun = performance.now();
      const response = await spine.post('/chat/completions', ask('hello !tokens:1'), {
        authorization: `Bearer ${key}`,
      });
      await response.text();
      slowest = Math.max(slowest, performance.now() - begun);
      if (response.status === 429) {
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('0');
      }
      return response.status;
    }),
  );
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  return {
    passed: statuses.filter((status) => status === 200).length,
    slowest,
    seconds: (performance.now() - started) / 1_000,
  };
}
/** 60 a minute and 20 more at once: 80, and one for each second that the burst took. */
const expectLimited = ({ passed, seconds }: Burst) => {
  expect(passed).toBeGreaterThanOrEqual(80);
  expect(passed).toBeLessThanOrEqual(81 + Math.ceil(seconds));
};

test('with Redis: 80 of 120 at once', async () => {
  expectLimited(await burst('there', 120));
});

test('flushed in the middle: limits begin anew, nothing fails', async () => {
  await burst('flushed', 60);
  await redis.flush();
  expectLimited(await burst('after-flush', 120));
});

test('frozen: limits are local, calls hardly wait', async () => {
  redis.freeze();
  try {
    const frozen = await burst('frozen', 120);
    expectLimited(frozen);
    expect(frozen.slowest).toBeLessThan(atThisLoad(3_000));
    const quick = await burst('frozen-later', 20);
    expect(quick.passed).toBe(20);
    expect(quick.slowest).toBeLessThan(atThisLoad(1_500));
  } finally {
    redis.thaw();
  }
});

test('killed and started again: no call fails before, during or after', async () => {
  const before = burst('before-kill', 100);
  await redis.kill9();
  expectLimited(await before);
  expectLimited(await burst('dead', 120));
  await redis.restart();
  expectLimited(await burst('back', 120));
});

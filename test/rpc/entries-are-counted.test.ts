import { expect, test } from 'vitest';
import { request, useRpcWorld } from './rpc-world.ts';

// Each entry is one request to the rate limit of its key; the endpoint itself is none.

let now = Date.now();
const world = useRpcWorld('', { now: () => now });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const whoami = (count: number) => Array.from({ length: count }, (_, id) => request(id, 'account/key'));

test('80 at once, in whatever batches; what is over is refused one by one', async () => {
  const { key } = await world.spine.tenant('eager', '1');
  for (const size of [50, 29]) expect((await world.batch(whoami(size), bearer(key))).every(({ result }) => result !== undefined)).toBe(true);
  const last = await world.post(request(1, 'account/key'), bearer(key));
  expect(last.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  const alone = await world.post(request('x', 'account/key'), bearer(key));
  expect(alone.status).toBe(429);
  expect(alone.headers.get('retry-after')).toBe('1');
  expect(alone.headers.get('x-ratelimit-limit-requests')).toBe('80');
  expect(await alone.json()).toMatchObject({
    id: 'x',
    error: { code: -32016, data: { type: 'rate_limit_exceeded', retry_after_s: 1, status: 429 } },
  });
  const batch = await world.post(whoami(3), bearer(key));
  expect(batch.status).toBe(200);
  expect(((await batch.json()) as { error: { code: number } }[]).map(({ error }) => error.code)).toEqual([-32016, -32016, -32016]);
  now += 2_000;
  const replies = await world.batch(whoami(3), bearer(key));
  expect(replies.filter(({ result }) => result !== undefined)).toHaveLength(2);
});

test('what needs no key, and what is no call, is not counted', async () => {
  const { key } = await world.spine.tenant('calm', '1');
  const entries = [
    request(1, 'ping'),
    request(2, 'models/list'),
    request(3, 'rpc.discover'),
    request(4, 'nothing'),
    null,
    { jsonrpc: '2.0', method: 'ping' },
  ];
  for (let round = 0; round < 20; round += 1) await world.batch(entries, bearer(key));
  const response = await world.post(request(1, 'account/key'), bearer(key));
  expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('79');
});

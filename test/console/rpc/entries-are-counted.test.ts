import { expect, test } from 'vitest';
import { request, useRpcWorld } from './rpc-world.ts';

// Each entry is one request to the rate limit of its key; the endpoint itself is none.

let now = Date.now();
const world = useRpcWorld('', { now: () => now });
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const whoami = (count: number) => Array.from({ length: count }, (_, id) => request(id, 'account/key'));

test('80 at once, in whatever batches; what is over is refused one by one', async () => {
  const { key } = await world.spine.tenant('eager', '1');
  for (const size of [50, 29])
    expect((await world.batch(whoami(size), bearer(key))).every(({ result }) => result !== undefined)).toBe(true);
  const last = await world.post(request(1, 'account/key'), bearer(key));
  expect(last.headers.get('x-ratelimit-remaining-requests')).toBe('0');
  const alone = await world.post(request('x', 'account/key'), bearer(key));
  expect(alone.status).toBe(429);
  expect(alone.headers.get('retry-after')).toBe('1');
  expect(alone.headers.get('x-ratelimit-limit-requests')).toBe('60');
  expect(await alone.json()).toMatchObject({
    id: 'x',
    error: { code: -32016, data: { type: 'rate_limit_exceeded', retry_after_s: 1, status: 429 } },
  });
  const batch = await world.post(whoami(3), bearer(key));
  expect(batch.status).toBe(200);
  expect(((await batch.json()) as { error: { code: number } }[]).map(({ error }) => error.code)).toEqual([
    -32016, -32016, -32016,
  ]);
  now += 2_000;
  const replies = await world.batch(whoami(3), bearer(key));
  expect(replies.filter(({ result }) => result !== undefined)).toHaveLength(2);
});

test('what needs no key is counted for the account of a good one; what is no call is not', async () => {
  const { key } = await world.spine.tenant('calm', '1');
  const open = [request(1, 'ping'), request(2, 'models/list'), request(3, 'rpc.discover')];
  const none = [request(4, 'nothing'), null, { jsonrpc: '2.0', method: 'ping' }];
  for (let round = 0; round < 20; round += 1) await world.batch([...open, ...none], bearer(key));
  const response = await world.post(request(1, 'account/key'), bearer(key));
  expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('19');
});

test.each(['', 'Bearer svc-sk-none'])(
  'strangers are counted by their network: 50 at once, whatever they send as a key (%j)',
  async (authorization) => {
    now += 3_600_000;
    const open = Array.from({ length: 50 }, (_, id) => request(id, 'ping'));
    expect((await world.batch(open, { authorization })).every(({ result }) => result !== undefined)).toBe(true);
    const refused = await world.batch(open, { authorization });
    expect(refused.map(({ error }) => error?.code)).toEqual(open.map(() => -32016));
    const alone = await world.post(request(1, 'models/list'), { authorization });
    expect(alone.status).toBe(429);
    expect(alone.headers.get('retry-after')).not.toBeNull();
    const { key } = await world.spine.tenant('beside', '1');
    expect(await world.call('ping', {}, bearer(key))).toMatchObject({ result: 'pong' });
  },
);

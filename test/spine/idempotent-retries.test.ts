import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// `Idempotency-Key`: a request that is sent again is answered again and paid once.

let skew = 0;
const spine = spineOfFile(() => ({ toml: UNHURRIED, now: () => Date.now() + skew }));
beforeEach(() => {
  // What a test did to the health of the provider is over.
  skew += 400_000;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

let counter = 0;
const newKey = () => `key-${++counter}`;
const post = (body: unknown, key: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  spine.post('/chat/completions', body, { 'idempotency-key': key, ...headers }, signal);
const spent = async (run: () => Promise<void>) => {
  const before = await spine.balance();
  await run();
  await spine.quiet();
  return before.available - (await spine.balance()).available;
};
const price = () => {
  const call = spine.provider.log.at(-1)!;
  return BigInt(call.promptTokens + 2 * call.completionTokens);
};

describe.each([false, true])('stream: %s', (stream) => {
  test('the same reply, from the same call, charged once', async () => {
    const key = newKey();
    const seen = spine.provider.log.length;
    const paid = await spent(async () => {
      const first = await post(ask('hello !tokens:5', { stream }), key);
      const text = await first.text();
      for (let i = 0; i < 3; i++) {
        const again = await post(ask('hello !tokens:5', { stream }), key);
        expect(again.status).toBe(200);
        expect(await again.text()).toBe(text);
        for (const name of [
          'content-type',
          'x-generation-id',
          'x-provider',
          'x-cost-usd',
          'x-receipt',
          'cache-control',
        ])
          expect(again.headers.get(name)).toBe(first.headers.get(name));
        expect(again.headers.get('idempotent-replayed')).toBe('true');
      }
      expect(first.headers.get('idempotent-replayed')).toBeNull();
    });
    expect(spine.provider.log.length).toBe(seen + 1);
    expect(paid).toBe(price());
  });

  test('a first run that failed is not kept: the retry runs', async () => {
    const key = newKey();
    const body = ask('hello !tokens:5', { stream });
    // Its only provider is asked twice.
    spine.provider.instruct({ status: 500 }, { status: 500 });
    expect((await post(body, key)).status).toBe(500);
    skew += 60_000;
    const again = await post(body, key);
    expect(again.status).toBe(200);
    expect(again.headers.get('idempotent-replayed')).toBeNull();
    await again.text();
  });

  test('nor one that was refused for lack of money, or as not valid', async () => {
    const key = newKey();
    const { key: poor, account } = await spine.tenant(`poor-${stream}`, '0.000001');
    const bearer = { authorization: `Bearer ${poor}` };
    expect((await post(ask('hello', { stream }), key, bearer)).status).toBe(402);
    await spine.app.ledger.transfer({
      id: `top-up-${stream}`,
      from: 'treasury:operator',
      to: `escrow:${account}`,
      amount: 1_000_000n,
      memo: '',
    });
    expect((await post(ask('hello', { stream }), key, bearer)).status).toBe(200);
    const other = newKey();
    expect((await post(ask('hello', { stream, temperature: 9 }), other)).status).toBe(400);
    expect((await post(ask('hello', { stream }), other)).status).toBe(200);
  });

  test('a stream that broke, or a reply that did, is run again', async () => {
    const key = newKey();
    const body = ask('hello !tokens:5', { stream });
    spine.provider.instruct({ cutAt: 200 });
    await (await post(body, key)).text();
    skew += 60_000;
    const again = await post(body, key);
    expect(again.status).toBe(200);
    expect(await again.text()).toContain('"finish_reason":"stop"');
  });

  test('while the first runs: 409 with Retry-After; after it, its reply', async () => {
    const key = newKey();
    const body = ask('hello !tokens:5', { stream });
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const first = post(body, key);
    while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
    const early = await post(body, key);
    expect(early.status).toBe(409);
    expect(Number(early.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await early.json()).toMatchObject({ error: { type: 'idempotency_conflict', code: 409 } });
    open.resolve();
    const text = await (await first).text();
    spine.provider.hold(null);
    expect(await (await post(body, key)).text()).toBe(text);
  });

  test('the client is gone midway: the retry finds the reply', async () => {
    const key = newKey();
    const body = ask('hello !tokens:10 !token-ms:10 !head-delay:30', { stream });
    const seen = spine.provider.log.length;
    const paid = await spent(async () => {
      const leaving = new AbortController();
      const first = post(body, key, {}, leaving.signal).then((response) => response.text());
      while (spine.provider.log.length === seen) await new Promise((resolve) => setImmediate(resolve));
      leaving.abort();
      await expect(first).rejects.toThrow();
      let again = await post(body, key);
      while (again.status === 409) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        again = await post(body, key);
      }
      expect(again.status).toBe(200);
      expect(await again.text()).toContain('"finish_reason":"stop"');
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    });
    expect(spine.provider.log.length).toBe(seen + 1);
    expect(paid).toBe(price());
  });

  test('fifty at once: one call, one charge, and the others get its reply or 409', async () => {
    const key = newKey();
    const seen = spine.provider.log.length;
    const paid = await spent(async () => {
      const statuses = await Promise.all(
        Array.from({ length: 50 }, async () => {
          const response = await post(ask('hello !tokens:5 !head-delay:50', { stream }), key);
          await response.text();
          return response.status;
        }),
      );
      expect(statuses).toContain(200);
      expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
    });
    expect(spine.provider.log.length).toBe(seen + 1);
    expect(paid).toBe(price());
  });

  test('the reply is repeated also while no provider is healthy', async () => {
    const key = newKey();
    const body = ask('hello !tokens:5', { stream });
    const text = await (await post(body, key)).text();
    for (let i = 0; i < 10; i++) await spine.post('/chat/completions', ask('hello !status:500'));
    expect((await spine.post('/chat/completions', ask('hello'))).status).toBe(503);
    const again = await post(body, key);
    expect(again.status).toBe(200);
    expect(await again.text()).toBe(text);
  });
});

test('another body under the same key is 409', async () => {
  const key = newKey();
  await (await post(ask('hello'), key)).text();
  for (const body of [ask('hello!'), ask('hello', { stream: true }), ask('hello', { temperature: 0 })]) {
    const response = await post(body, key);
    expect(response.status).toBe(409);
    expect(response.headers.get('retry-after')).toBeNull();
    expect(await response.json()).toMatchObject({
      error: { type: 'idempotency_conflict', code: 409, param: 'Idempotency-Key' },
    });
  }
});

test.each([
  ['/api/v1', '/v1'],
  ['/v1', '/api/v1'],
])('a key that was used below %s is a conflict below %s, whose answers have other words', async (first, second) => {
  const key = `dialect ${first}`;
  const send = (prefix: string) =>
    fetch(`${spine.origin}${prefix}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${spine.key}`, 'idempotency-key': key },
      body: JSON.stringify({ ...ask('!tokens:1'), stream: true }),
    });
  const text = await (await send(first)).text();
  const refused = await send(second);
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({
    error: { type: 'idempotency_conflict', message: expect.stringContaining('at another address') as string },
  });
  const again = await send(first);
  expect([again.headers.get('idempotent-replayed'), await again.text()]).toEqual(['true', text]);
});

test("keys are each account's own", async () => {
  const key = newKey();
  const { key: other } = await spine.tenant('other', '1');
  const first = await (await post(ask('hello'), key)).text();
  const response = await post(ask('hello'), key, { authorization: `Bearer ${other}` });
  expect(response.headers.get('idempotent-replayed')).toBeNull();
  expect(await response.text()).not.toBe(first);
});

test('a day later a key is new again', async () => {
  const key = newKey();
  await (await post(ask('hello'), key)).text();
  skew += 86_400_001;
  expect((await post(ask('something else'), key)).status).toBe(200);
});

test.each(['x'.repeat(256), 'caf\u00e9'])('a key that is none is refused', async (key) => {
  const response = await post(ask('hello'), key);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param: 'Idempotency-Key' } });
});

test('a replay needs a credential like any call', async () => {
  const key = newKey();
  await (await post(ask('hello'), key)).text();
  expect((await post(ask('hello'), key, { authorization: 'Bearer nobody' })).status).toBe(401);
});

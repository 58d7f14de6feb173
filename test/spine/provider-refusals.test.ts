import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A provider that refuses the request itself speaks for all: its refusal is passed on, free, and does not count
// against it.

let second: TestProvider;
let spine: Spine;
beforeAll(async () => {
  second = await startProvider();
  spine = await startSpine({
    toml: `${UNHURRIED}${modelBlock({ provider: 'Second', url: second.url, prompt: 50, completion: 50 })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await second.stop();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

test.each([
  [400, 400, 'invalid_request'],
  [413, 413, 'payload_too_large'],
  [422, 422, 'unprocessable'],
  [451, 400, 'invalid_request'],
])('its %i is answered as %i %s, and nobody else is asked', async (status, answered, type) => {
  for (const stream of [false, true]) {
    spine.provider.log.length = 0;
    const before = await spine.balance();
    spine.provider.instruct({ status });
    const response = await spine.post(
      '/chat/completions',
      ask('hello', { stream, provider: { order: ['Test', 'Second'] } }),
    );
    expect(response.status).toBe(answered);
    expect(response.headers.get('content-type')).toContain('application/json');
    const { error } = (await response.json()) as {
      error: { message: string; type: string; code: number; param: null };
    };
    expect(error).toMatchObject({ type, code: answered });
    // The provider's own words, so that the consumer can mend its request.
    expect(error.message).toContain(`the test provider was told to answer ${status}`);
    expect([spine.provider.log.length, second.log.length]).toEqual([1, 0]);
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
  }
  const { data } = (await (await spine.get('/providers')).json()) as {
    data: { name: string; uptime: number | null; status: string }[];
  };
  expect(data.find(({ name }) => name === 'Test')).toMatchObject({ status: 'healthy', uptime: null });
});

test('a 429 of the only provider is the failure of a provider, not a rate limit or a lack of money of the consumer', async () => {
  const response = await spine.post(
    '/chat/completions',
    ask('hello !status:429 !retry-after:7', { provider: { only: ['Second'] } }),
  );
  expect(response.status).toBe(500);
  expect(response.headers.get('retry-after')).toBe('7');
  expect(await response.json()).toMatchObject({ error: { type: 'provider_unavailable' } });
});

test('a 401 of the only provider is not a 401 of the consumer, and its words stay inside', async () => {
  spine.logs.length = 0;
  const response = await spine.post('/chat/completions', ask('hello !status:401', { provider: { only: ['Second'] } }));
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('told to answer 401');
});

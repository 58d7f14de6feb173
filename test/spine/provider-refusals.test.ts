import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startProvider, type TestProvider } from '../support/provider.ts';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// A provider that refuses the request itself may be wrong: one other is asked. Two that refuse are believed, and the
// refusal is passed on, free, and counts against nobody.

let second: TestProvider;
let third: TestProvider;
let spine: Spine;
let skew = 0;
beforeAll(async () => {
  [second, third] = await Promise.all([startProvider(), startProvider()]);
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml:
      UNHURRIED +
      modelBlock({ provider: 'Second', url: second.url, prompt: 3, completion: 5 }) +
      modelBlock({ provider: 'Third', url: third.url, prompt: 4, completion: 6 }),
  });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([second.stop(), third.stop()]);
});
beforeEach(() => {
  // Nothing of the test before is remembered: failures, figures of the last hour, retries.
  skew += 2 * 3_600_000;
  for (const { log } of [spine.provider, second, third]) log.length = 0;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

const ORDER = { provider: { order: ['Test', 'Second', 'Third'] } };
const asked = () => [spine.provider.log.length, second.log.length, third.log.length];
const call = (more: object = {}) => spine.post('/chat/completions', ask('hello !tokens:5', { ...ORDER, ...more }));

interface Shown {
  readonly name: string;
  readonly uptime: number | null;
  readonly status: string;
}
async function uptimes(): Promise<readonly (number | null)[]> {
  const { data } = (await (await spine.get('/providers')).json()) as { readonly data: readonly Shown[] };
  return ['Test', 'Second', 'Third'].map((name) => data.find((each) => each.name === name)!.uptime);
}

test.each([
  [400, 400, 'invalid_request'],
  [413, 413, 'payload_too_large'],
  [422, 422, 'unprocessable'],
  [451, 400, 'invalid_request'],
])(
  'its %i, with another one from a second, is answered as %i %s, and no third is asked',
  async (status, answered, type) => {
    const before = await spine.balance();
    for (const stream of [false, true]) {
      for (const { log } of [spine.provider, second, third]) log.length = 0;
      spine.provider.instruct({ status });
      second.instruct({ status: status === 400 ? 422 : 400 });
      const response = await call({ stream });
      expect(response.status).toBe(answered);
      expect(response.headers.get('content-type')).toContain('application/json');
      const { error } = (await response.json()) as {
        error: { message: string; type: string; code: number; param: null };
      };
      expect(error).toMatchObject({ type, code: answered });
      // The words of the provider that was asked first, so that the consumer can mend its request.
      expect(error.message).toContain(
        `Provider Test refused the request: the test provider was told to answer ${status}`,
      );
      expect(asked()).toEqual([1, 1, 0]);
      await spine.quiet();
    }
    expect(await spine.balance()).toEqual(before);
    expect(await uptimes()).toEqual([null, null, null]);
  },
);

describe.each([false, true])('a refusal of one alone (stream: %s)', (stream) => {
  test('is its failure: the next serves, at its price, and is preferred then', async () => {
    spine.provider.instruct({ status: 400 });
    const before = await spine.balance();
    const response = await call({ stream });
    expect([response.status, response.headers.get('x-provider')]).toEqual([200, 'Second']);
    const text = await response.text();
    const { usage } = (stream ? events(text).at(-2) : JSON.parse(text)) as { usage: { cost: number } };
    await spine.quiet();
    const paid = before.available - (await spine.balance()).available;
    expect(paid).toBe(BigInt(3 * second.log[0]!.promptTokens + 5 * 5));
    expect(usage.cost).toBe(Number(paid) / 1e6);
    expect(asked()).toEqual([1, 1, 0]);
    expect(await uptimes()).toEqual([0, 1, null]);
    // It rests for this account: the next call is not given to it.
    expect((await call({ stream, provider: {} })).headers.get('x-provider')).not.toBe('Test');
    expect(spine.provider.log).toHaveLength(1);
  });
});

test('a refusal of content is tried elsewhere, too', async () => {
  spine.provider.instruct({ status: 451 });
  expect((await call()).headers.get('x-provider')).toBe('Second');
});

test('a refusal stands where the other provider fails, and neither is blamed', async () => {
  spine.provider.instruct({ status: 422 });
  second.instruct({ status: 500 });
  third.instruct({ status: 500 });
  const response = await call();
  expect(response.status).toBe(422);
  expect(await response.text()).toContain('Provider Test refused the request');
  expect(asked()).toEqual([1, 1, 1]);
  expect(await uptimes()).toEqual([null, null, null]);
});

test('where no other may serve, the refusal is told at once', async () => {
  spine.provider.instruct({ status: 400 });
  expect((await call({ provider: { order: ['Test'], allow_fallbacks: false } })).status).toBe(400);
  expect(asked()).toEqual([1, 0, 0]);
});

test('a 429 of the only provider is told as one, with its time', async () => {
  const response = await spine.post(
    '/chat/completions',
    ask('hello !status:429 !retry-after:7', { provider: { only: ['Second'] } }),
  );
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('7');
  expect(await response.json()).toMatchObject({ error: { type: 'rate_limit_exceeded' } });
});

test('a 401 of the only provider is not a 401 of the consumer, and its words stay inside', async () => {
  spine.logs.length = 0;
  const response = await spine.post('/chat/completions', ask('hello !status:401', { provider: { only: ['Second'] } }));
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('told to answer 401');
});

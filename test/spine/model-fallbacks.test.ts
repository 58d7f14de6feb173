import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ask, events, modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// `models`: other models to fall back to, each at its own price.

let spine: Spine;
let skew = 0;
beforeAll(async () => {
  spine = await startSpine({
    now: () => Date.now() + skew,
    toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${modelBlock({ name: 'test/dear', provider: 'Dear', url: '{provider}', prompt: 1000, completion: 2000 })}
${modelBlock({ name: 'test/broken', provider: 'Closed', url: 'http://127.0.0.1:9/v1' })}
${modelBlock({ name: 'test/small', provider: 'Small', url: '{provider}', maxOutputTokens: 10 })}`,
  });
});
afterAll(() => spine.stop());
beforeEach(() => {
  skew += 20_000;
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

test('the first model that can be served answers, under its own name and price', async () => {
  for (const stream of [false, true]) {
    const before = await spine.balance();
    const response = await spine.post(
      '/chat/completions',
      ask('hello !tokens:4', { model: 'test/broken', models: ['test/dear', 'test/model'], stream }),
    );
    expect(response.status).toBe(200);
    const text = await response.text();
    const reply = (stream ? events(text).at(-2) : JSON.parse(text)) as { model: string };
    expect(reply.model).toBe('test/dear');
    await spine.quiet();
    const call = spine.provider.log.at(-1)!;
    expect(before.available - (await spine.balance()).available).toBe(BigInt(1000 * call.promptTokens + 2000 * 4));
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({ model: 'test/dear', provider_name: 'Dear' });
  }
});

test('a model that is named twice is tried once', async () => {
  const seen = spine.provider.log.length;
  const response = await spine.post('/chat/completions', ask('hello !status:500', { models: ['test/model', 'test/model'] }));
  expect(response.status).toBe(500);
  expect(spine.provider.log.length).toBe(seen + 1);
});

test('a fallback that does not exist is said at once', async () => {
  const response = await spine.post('/chat/completions', ask('hello', { models: ['test/nowhere'] }));
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { type: 'invalid_model', message: 'Model not found: test/nowhere' } });
});

test('a first choice that cannot do what is asked gives way to a fallback that can', async () => {
  const response = await spine.post('/chat/completions', ask('hello !tokens:20', { model: 'test/small', max_tokens: 30, models: ['test/model'] }));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model', usage: { completion_tokens: 20 } });
});

test('a dear fallback does not refuse a first choice that the balance affords', async () => {
  const { key } = await spine.tenant('modest', '0.01');
  const response = await spine.post('/chat/completions', ask('hello !tokens:4', { models: ['test/dear'] }), { authorization: `Bearer ${key}` });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model' });
});

test('nor one that the spending limit of the key affords', async () => {
  const { key } = await spine.tenant('limited', '10', { limit: 10_000n });
  const response = await spine.post('/chat/completions', ask('hello !tokens:4', { models: ['test/dear'] }), { authorization: `Bearer ${key}` });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model' });
});

test('nor does it become the choice when the affordable one fails', async () => {
  const { key } = await spine.tenant('careful', '0.01');
  const response = await spine.post('/chat/completions', ask('hello !status:500', { models: ['test/dear'] }), { authorization: `Bearer ${key}` });
  expect(response.status).toBe(500);
  expect(await (await spine.get('/session/balance', { authorization: `Bearer ${key}` })).json()).toMatchObject({ balance_micro_usdc: 10_000 });
});

import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask, events, modelBlock, UNHURRIED } from '../support/spine.ts';
import { spineOfFile } from '../support/of-file.ts';

// `models`: other models to fall back to, each at its own price.

let skew = 0;
const spine = spineOfFile(() => ({
  now: () => Date.now() + skew,
  toml: `${UNHURRIED}
[upstream]
cooldown_ms = 0
${modelBlock({ name: 'test/dear', provider: 'Dear', url: '{provider}', prompt: 1000, completion: 2000 })}
${modelBlock({ name: 'test/broken', provider: 'Closed', url: 'http://127.0.0.1:9/v1' })}
${modelBlock({ name: 'test/small', provider: 'Small', url: '{provider}', maxOutputTokens: 10 })}`,
}));
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
    expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
      model: 'test/dear',
      provider_name: 'Dear',
    });
  }
});

test('a model that is named twice counts once: its only offer is asked once more, and no further time', async () => {
  const seen = spine.provider.log.length;
  const response = await spine.post(
    '/chat/completions',
    ask('hello !status:500', { models: ['test/model', 'test/model'] }),
  );
  expect(response.status).toBe(500);
  expect(spine.provider.log.length).toBe(seen + 2);
});

test.each([
  [{ model: 'test/nowhere', models: ['test/model'] }],
  [{ model: 'test/model', models: ['test/nowhere'] }],
  [{ model: undefined, models: ['test/nowhere', 'test/model'] }],
  [{ model: undefined, models: ['test/model'] }],
  [{ model: null, models: ['test/model', 'test/dear'] }],
])('a model that nobody offers is skipped, and models without model is enough: %j', async (names) => {
  const response = await spine.post('/chat/completions', ask('hello', names));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model' });
});

test('where nobody offers any of them, the first is said', async () => {
  for (const names of [
    { model: 'test/nowhere', models: ['test/neither'] },
    { model: undefined, models: ['test/nowhere'] },
  ]) {
    const response = await spine.post('/chat/completions', ask('hello', names));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      error: {
        type: 'invalid_model',
        message: expect.stringMatching(/^Model not found: test\/nowhere\. The nearest: test\//) as string,
      },
    });
  }
});

test('without any model, model is asked for', async () => {
  for (const [names, error] of [
    [
      { model: undefined },
      { param: 'model', message: expect.stringMatching(/^model is required: the name of a model/) as string },
    ],
    [{ model: undefined, models: [] }, { param: 'model' }],
    [{ model: undefined, models: [3] }, { param: 'models[0]' }],
    [{ model: 3, models: ['test/model'] }, { param: 'model' }],
  ] as const) {
    const response = await spine.post('/chat/completions', ask('hello', names));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error });
  }
});

test('a first choice that cannot do what is asked gives way to a fallback that can', async () => {
  const content = [
    { type: 'text', text: 'hello !tokens:20' },
    { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
  ];
  const response = await spine.post(
    '/chat/completions',
    ask('', { model: 'test/small', messages: [{ role: 'user', content }], models: ['test/model'] }),
  );
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model', usage: { completion_tokens: 20 } });
});

test('a dear fallback does not refuse a first choice that the balance affords', async () => {
  const { key } = await spine.tenant('modest', '0.01');
  const response = await spine.post('/chat/completions', ask('hello !tokens:4', { models: ['test/dear'] }), {
    authorization: `Bearer ${key}`,
  });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model' });
});

test('nor one that the spending limit of the key affords', async () => {
  const { key } = await spine.tenant('limited', '10', { limit: 10_000n });
  const response = await spine.post('/chat/completions', ask('hello !tokens:4', { models: ['test/dear'] }), {
    authorization: `Bearer ${key}`,
  });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ model: 'test/model' });
});

test('nor does it become the choice when the affordable one fails', async () => {
  const { key } = await spine.tenant('careful', '0.01');
  const response = await spine.post('/chat/completions', ask('hello !status:500', { models: ['test/dear'] }), {
    authorization: `Bearer ${key}`,
  });
  expect(response.status).toBe(500);
  expect(await (await spine.get('/session/balance', { authorization: `Bearer ${key}` })).json()).toMatchObject({
    balance_micro_usdc: 10_000,
  });
});

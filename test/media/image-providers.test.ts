import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import {
  imageBlock,
  type Images,
  type ImageProvider,
  json,
  paintAsAsked,
  startImageProvider,
} from './support/image-provider.ts';

// Several providers of one image model: who is asked, and what is charged.

let cheap: ImageProvider;
let dear: ImageProvider;
let spine: Spine;
beforeAll(async () => {
  [cheap, dear] = await Promise.all([startImageProvider(), startImageProvider()]);
  spine = await startSpine({
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 0\n` +
      imageBlock({ url: cheap.url, provider: 'Cheap', generation: 0.01 }) +
      imageBlock({
        url: dear.url,
        provider: 'Dear',
        generation: 0.05,
        lines: 'supported_params = ["seed"]\nresolutions = ["1K", "2K"]',
      }) +
      imageBlock({ url: dear.url, provider: 'Dear', name: 'test/other', generation: 0.02 }),
  });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([cheap.close(), dear.close()]);
});
afterEach(async () => {
  cheap.answer(paintAsAsked);
  expect(await spine.faults()).toEqual([]);
});

async function served(more: object, headers: Record<string, string> = {}) {
  const response = await spine.post('/image/generate', { model: 'test/paint', prompt: 'A', ...more }, headers);
  const { usage, provider_metadata: by } = (await response.json()) as Images;
  expect(response.status).toBe(200);
  expect(response.headers.get('x-provider')).toBe(by.provider);
  return [by.provider, usage.cost] as const;
}

test('the provider that is asked for serves, at its price', async () => {
  expect(await served({ provider: { order: ['Dear'] } })).toEqual(['Dear', 0.05]);
  expect(await served({ provider: { sort: 'price' } })).toEqual(['Cheap', 0.01]);
  expect(await served({ model: 'test/paint:floor' })).toEqual(['Cheap', 0.01]);
  expect(await served({ provider: { ignore: ['Cheap'] } })).toEqual(['Dear', 0.05]);
  expect(await served({ provider: { max_price: { image: '0.02' } } })).toEqual(['Cheap', 0.01]);
});

test('a provider that does not take a field is passed over', async () => {
  expect(await served({ provider: { order: ['Cheap'] }, resolution: '2K' })).toEqual(['Dear', 0.05]);
  const [, response] = [
    dear.requests.at(-1)!,
    await spine.post('/image/generate', {
      model: 'test/paint',
      prompt: 'A',
      resolution: '2K',
      provider: { only: ['Cheap'] },
    }),
  ];
  expect(response.status).toBe(422);
});

test.each([429, 500, 503])(
  'a provider that answers %i is followed by the next, which alone is paid',
  async (status) => {
    cheap.answer((_request, response) => json(response, status, { error: { message: 'not now' } }));
    expect(await served({ provider: { order: ['Cheap'] } })).toEqual(['Dear', 0.05]);
  },
);

test('a provider whose reply has no image is followed by the next', async () => {
  cheap.answer((_request, response) => json(response, 200, { data: [] }));
  expect(await served({ provider: { order: ['Cheap'] } })).toEqual(['Dear', 0.05]);
});

test('a provider that alone refuses the form of a request is followed by the next', async () => {
  cheap.answer((_request, response) => json(response, 400, { error: { message: 'wrong size' } }));
  expect(await served({ provider: { order: ['Cheap'] } })).toEqual(['Dear', 0.05]);
});

test('content that a policy refuses goes to no other provider, and to the next model by choice', async () => {
  const error = { code: 'content_policy_violation', message: 'not allowed here' };
  cheap.answer((_request, response) => json(response, 422, { error }));
  const models = ['test/other'];
  const request = { model: 'test/paint', models, prompt: 'A', provider: { order: ['Cheap'] } };
  expect((await spine.post('/image/generate', request)).status).toBe(422);
  expect(await served({ models, provider: { order: ['Cheap'], content_fallbacks: true } })).toEqual(['Dear', 0.02]);
});

test('a provider that breaks off is followed by the next', async () => {
  cheap.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"data":[{"b64_json":"iVBO', () => response.destroy());
  });
  expect(await served({ provider: { order: ['Cheap'] } })).toEqual(['Dear', 0.05]);
});

test('fallback models are asked in their order', async () => {
  expect(await served({ model: 'test/none', models: ['test/other'] })).toEqual(['Dear', 0.02]);
  expect(await served({ model: undefined, models: ['test/other'] })).toEqual(['Dear', 0.02]);
});

test('the price of a direct name is that of its provider', async () => {
  const { data } = (await (await spine.get('/providers')).json()) as { data: { id: string; name: string }[] };
  const { id } = data.find(({ name }) => name === 'Dear')!;
  expect(await served({ model: `${id}:test/paint` })).toEqual(['Dear', 0.05]);
});

test('what a client that left would have got is paid, where it comes in time', async () => {
  const before = (await spine.balance()).available;
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  cheap.answer(async (request, response) => {
    asked.resolve();
    await answer.promise;
    return paintAsAsked(request, response);
  });
  const leaving = new AbortController();
  const body = { model: 'test/paint', prompt: 'A', provider: { only: ['Cheap'] } };
  const calling = spine.post('/image/generate', body, {}, leaving.signal).catch(() => null);
  await asked.promise;
  leaving.abort();
  await calling;
  answer.resolve();
  await spine.quiet();
  expect(before - (await spine.balance()).available).toBe(10_000n);
});

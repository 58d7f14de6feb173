import { setTimeout as pause } from 'node:timers/promises';
import OpenAI, { toFile } from 'openai';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { type Answering, imageBlock, json, png, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Images that are streamed: partial ones as they come, then the image, which alone is charged.

let client: OpenAI;
const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  const lines = 'supported_params = ["stream", "partial_images"]';
  return {
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 1\n` +
      imageBlock({ url, lines, params: 'edits = true' }) +
      imageBlock({ url, name: 'test/never' }),
  };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const image = png(64, 64).toString('base64');
const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const partial = (index: number) =>
  event('image_generation.partial_image', {
    b64_json: png(8 + index, 8).toString('base64'),
    partial_image_index: index,
  });
const completed = event('image_generation.completed', {
  b64_json: image,
  created_at: 1,
  size: '64x64',
  usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
});
const streaming =
  (...events: readonly string[]): Answering =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const one of events) response.write(one);
    response.end();
  };

interface ImageEvent {
  readonly type: string;
  readonly b64_json: string;
  readonly partial_image_index?: number;
  readonly index?: number;
  readonly seed?: number;
  readonly usage?: { readonly cost: number };
  readonly error?: { readonly code: string; readonly message: string };
}

async function eventsOf(response: Response): Promise<readonly ImageEvent[]> {
  const text = await response.text();
  expect([response.status, response.headers.get('content-type'), text.slice(0, 200)]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
    expect.any(String),
  ]);
  expect(response.headers.get('x-accel-buffering')).toBe('no');
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform');
  return text
    .split('\n\n')
    .filter((one) => one !== '')
    .map((one) => {
      const [name = '', data = ''] = one.split('\n');
      const read = JSON.parse(data.slice('data: '.length)) as ImageEvent;
      expect(name).toBe(`event: ${read.type}`);
      return read;
    });
}

const ask = (more: object = {}) => ({ model: 'test/paint', prompt: 'A tollgate', stream: true, ...more });
const spent = async (act: () => Promise<unknown>) => {
  const before = await spine.balance();
  await act();
  await spine.quiet();
  return before.available - (await spine.balance()).available;
};

test('partial images come first, then the image with its cost', async () => {
  provider.answer(streaming(partial(0), partial(1), partial(2), completed, 'data: [DONE]\n\n'));
  const charged = await spent(async () => {
    const events = await eventsOf(await spine.post('/image/generate', ask()));
    expect(events.map(({ type, partial_image_index: index }) => [type, index])).toEqual([
      ['image_generation.partial_image', 0],
      ['image_generation.partial_image', 1],
      ['image_generation.completed', undefined],
    ]);
    expect(events.at(-1)).toMatchObject({ b64_json: image, output_format: 'png', usage: { images: 1, cost: 0.04 } });
  });
  expect(charged).toBe(40_000n);
  expect(provider.requests.at(-1)!.body).toMatchObject({ stream: true, partial_images: 2 });
});

test('the SDK reads the stream of a generation and of an edit', async () => {
  provider.answer(streaming(partial(0), completed));
  const types: string[] = [];
  const body = { model: 'test/paint', prompt: 'A', partial_images: 3, stream: true } as const;
  for await (const one of await client.images.generate(body)) types.push(one.type);
  for await (const one of await client.images.edit({ ...body, image: await toFile(png(8, 8), 'a.png') })) {
    types.push(one.type);
    if (one.type === 'image_edit.completed') expect(Buffer.from(one.b64_json, 'base64')).toEqual(png(64, 64));
  }
  expect(types).toEqual([
    'image_generation.partial_image',
    'image_generation.completed',
    'image_edit.partial_image',
    'image_edit.completed',
  ]);
  expect(provider.requests.at(-1)!.body).toMatchObject({ stream: 'true', partial_images: '3' });
});

test('events are read wherever they are split, and a provider that does not stream is read too', async () => {
  const bytes = Buffer.from((partial(0) + completed).replaceAll('\n', '\r\n'));
  provider.answer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let at = 0; at < bytes.length; at += 37) {
      response.write(bytes.subarray(at, at + 37));
      await pause(0);
    }
    response.end();
  });
  const types = async () => (await eventsOf(await spine.post('/image/generate', ask()))).map(({ type }) => type);
  expect(await types()).toEqual(['image_generation.partial_image', 'image_generation.completed']);
  provider.answer((_request, response) => json(response, 200, { data: [{ b64_json: image }] }));
  expect(await types()).toEqual(['image_generation.completed']);
});

test('a stream that breaks after its first event ends with an error, and costs nothing', async () => {
  for (const end of ['', event('error', { error: { message: 'out of paint' } }), 'data: {"broken\n\n']) {
    const seen = Promise.withResolvers<void>();
    provider.answer(async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(partial(0));
      await seen.promise;
      response.end(end);
    });
    const charged = await spent(async () => {
      const response = await spine.post('/image/generate', ask());
      seen.resolve();
      const events = await eventsOf(response);
      expect(events.map(({ type }) => type)).toEqual(['image_generation.partial_image', 'error']);
      expect(events[1]!.error).toMatchObject({ code: 'provider_unavailable' });
    });
    expect(charged).toBe(0n);
  }
});

test('before the first event an error is an error', async () => {
  provider.answer((_request, response) => json(response, 500, {}));
  expect((await spine.post('/image/generate', ask())).status).toBe(500);
  provider.answer(streaming(event('image_generation.completed', { b64_json: 'bm8gaW1hZ2U=' })));
  expect((await spine.post('/image/generate', ask())).status).toBe(500);
});

test.each(['test/paint', 'test/never'])(
  'several images of %s come one after the other, each with its index, and the last with the cost of all',
  async (model) => {
    const images = [png(64, 64), png(64, 65), png(64, 66)].map((one) => one.toString('base64'));
    const data = [{ b64_json: images[0], seed: 7 }, { b64_json: images[1] }, { b64_json: images[2] }];
    provider.answer((_request, response) => json(response, 200, { data, usage: { total_tokens: 3 } }));
    // The first model lists what it takes, and a seed is not in its list.
    const sent = model === 'test/paint' ? undefined : 5;
    const more = { n: 3, seed: sent, model, partial_images: 2 };
    const charged = await spent(async () => {
      const events = await eventsOf(await spine.post('/image/generate', ask(more)));
      expect(events.map(({ type, index, seed, b64_json: b64 }) => [type, index, seed, b64])).toEqual([
        ['image_generation.completed', 0, 7, images[0]],
        ['image_generation.completed', 1, sent, images[1]],
        ['image_generation.completed', 2, sent, images[2]],
      ]);
      expect(events.map(({ usage }) => usage?.cost)).toEqual([undefined, undefined, 0.12]);
    });
    expect(charged).toBe(120_000n);
    const { body } = provider.requests.at(-1)!;
    expect(body).toMatchObject({ n: 3 });
    expect(body).not.toHaveProperty('stream');

    // What did not come is not charged.
    provider.answer((_request, response) => json(response, 200, { data: data.slice(0, 2) }));
    const fewer = await spent(async () => {
      const events = await eventsOf(await spine.post('/image/generate', ask({ ...more, prompt: 'fewer' })));
      expect(events.map(({ index, usage }) => [index, usage?.cost])).toEqual([
        [0, undefined],
        [1, 0.08],
      ]);
    });
    expect(fewer).toBe(80_000n);
  },
);

test('whoever leaves pays for the image that still came', async () => {
  const left = Promise.withResolvers<void>();
  provider.answer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(partial(0));
    await left.promise;
    response.end(completed);
  });
  const charged = await spent(async () => {
    const leaving = new AbortController();
    const response = await spine.post('/image/generate', ask(), {}, leaving.signal);
    await response.body!.getReader().read();
    leaving.abort();
    left.resolve();
  });
  expect(charged).toBe(40_000n);
});

test.each([
  [{ output_type: 'file' }, 400, 'output_type'],
  [{ stream: false, partial_images: 1 }, 400, 'partial_images'],
  [{ partial_images: 4 }, 400, 'partial_images'],
  [{ model: 'test/never' }, 422, 'stream'],
])('%j is refused', async (more, status, param) => {
  const response = await spine.post('/image/generate', ask(more));
  expect([response.status, await response.json()]).toMatchObject([status, { error: { param } }]);
});

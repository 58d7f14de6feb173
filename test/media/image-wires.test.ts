import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import {
  imageBlock,
  type Images,
  type ImageProvider,
  json,
  paintAsAsked,
  png,
  startImageProvider,
} from './support/image-provider.ts';

// Providers with other APIs: another gateway, and OpenRouter's.

let painter: ImageProvider;
let inner: Spine;
let outer: Spine;
beforeAll(async () => {
  painter = await startImageProvider();
  inner = await startSpine({
    toml: UNHURRIED + imageBlock({ url: painter.url, generation: 0.03, lines: LINES, params: 'edits = true' }),
  });
  const sold = imageBlock({
    url: inner.url,
    generation: 0.05,
    lines: LINES,
    params: 'edits = true\nwire = "tollgate"',
  });
  outer = await startSpine({
    toml:
      UNHURRIED +
      sold.replace('model = "upstream-paint"', 'model = "test/paint"').replace('image-secret-canary', inner.key) +
      imageBlock({
        url: painter.url,
        name: 'test/routed',
        params: 'edits = true\nwire = "openrouter"',
        lines: 'supported_params = ["input_references"]',
      }),
  });
});
afterAll(async () => {
  await outer.stop();
  await inner.stop();
  await painter.close();
});
beforeEach(() => {
  painter.answer(paintAsAsked);
});
afterEach(async () => expect([await outer.faults(), await inner.faults()]).toEqual([[], []]));

const LINES = 'supported_params = ["seed", "steps", "guide_scale", "stream", "partial_images"]';
const base = png(96, 64);
const ask = (more: object = {}) => ({ model: 'test/paint', prompt: 'A tollgate', ...more });
const edit = { images: [{ b64: base.toString('base64') }], mask: { b64: base.toString('base64') } };

test.each([
  ['/image/generate', {}],
  ['/image/edit', edit],
])('%s through another gateway: each bill is right, and the fields arrive', async (path, more) => {
  const before = [await outer.balance(), await inner.balance()];
  const response = await outer.post(
    path,
    ask({ n: 2, size: '96x64', seed: 7, steps: 20, guidance_scale: 3.5, ...more }),
  );
  const answer = (await response.json()) as Images;
  expect([response.status, answer]).toMatchObject([200, { usage: { images: 2, cost: 0.1 } }]);
  expect(answer.images.map(({ seed }) => seed)).toEqual([7, 7]);
  expect(Buffer.from(answer.images[0]!.data_url.split(',')[1]!, 'base64')).toEqual(base);
  const after = [await outer.balance(), await inner.balance()];
  expect(before.map(({ available }, index) => available - after[index]!.available)).toEqual([100_000n, 60_000n]);
  const { body, path: asked } = painter.requests.at(-1)!;
  expect(asked).toBe(path === '/image/edit' ? '/v1/images/edits' : '/v1/images/generations');
  expect([Number(body['seed']), Number(body['num_inference_steps']), Number(body['guidance_scale'])]).toEqual([
    7, 20, 3.5,
  ]);
});

test('a stream passes through both', async () => {
  const image = base.toString('base64');
  painter.answer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const type of ['partial_image', 'completed'])
      response.write(`data: ${JSON.stringify({ type: `image_generation.${type}`, b64_json: image })}\n\n`);
    response.end();
  });
  const text = await (await outer.post('/image/generate', ask({ stream: true }))).text();
  expect([...text.matchAll(/event: (\S+)/g)].map(([, type]) => type)).toEqual([
    'image_generation.partial_image',
    'image_generation.completed',
  ]);
  expect(text).toContain('"cost":0.05');
});

test('a refusal of the other gateway is told', async () => {
  painter.answer((_request, response) =>
    json(response, 400, { error: { code: 'content_policy_violation', message: 'Your prompt is against the rules' } }),
  );
  const before = await outer.balance();
  const response = await outer.post('/image/generate', ask());
  expect([response.status, await response.json()]).toMatchObject([
    422,
    { error: { code: 'content_policy', message: expect.stringContaining('against the rules') as string } },
  ]);
  expect((await outer.balance()).available).toBe(before.available);
});

test("OpenRouter's API has one path, with references for an edit", async () => {
  const { images } = edit;
  expect((await outer.post('/image/generate', ask({ model: 'test/routed', aspect_ratio: '16:9' }))).status).toBe(200);
  expect([painter.requests.at(-1)!.path, painter.requests.at(-1)!.body]).toMatchObject(['/v1/images', { n: 1 }]);
  // They would be neither checked nor charged.
  const unread = { input_references: [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/latest' } }] };
  for (const [path, more] of [['/image/generate', unread] as const, ['/image/edit', { ...unread, images }] as const]) {
    const refused = await outer.post(path, ask({ model: 'test/routed', ...more }));
    expect([refused.status, await refused.json()]).toMatchObject([422, { error: { param: 'input_references' } }]);
  }
  const response = await outer.post('/image/edit', ask({ model: 'test/routed', images }));
  expect([response.status, await response.json()]).toMatchObject([200, { usage: { cost: 0.04 } }]);
  expect(painter.requests.at(-1)!.body['input_references']).toEqual([
    { type: 'image_url', image_url: { url: `data:image/png;base64,${images[0]!.b64}` } },
  ]);
  const masked = await outer.post('/image/edit', ask({ model: 'test/routed', ...edit }));
  expect([masked.status, await masked.json()]).toMatchObject([422, { error: { param: 'mask' } }]);
});

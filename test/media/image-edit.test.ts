import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import OpenAI, { toFile } from 'openai';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { imageBlock, type Images, paintAsAsked, png, startImageProvider } from './support/image-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// `/image/edit`, and `/images/edits` as OpenAI's own client uses it.

let client: OpenAI;
const provider = ofFile(startImageProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  const edits = 'edits = true';
  return {
    toml:
      `${UNHURRIED}[upstream]\ncooldown_ms = 1\n` +
      imageBlock({
        url,
        params: edits,
        pricing: 'input_image = 0',
        lines: 'supported_params = ["watermark", "seed", "background"]',
      }) +
      imageBlock({
        url,
        name: 'test/json',
        params: `${edits}\nbody = "json"`,
        pricing: 'edit = 0.05\ninput_image = 0.003',
      }) +
      imageBlock({
        url,
        name: 'test/tiers',
        params: edits,
        pricing:
          'resolutions = { "1K" = 0.02, "2K" = 0.08 }\nvariants = { "2K/high" = 0.2, "edit/2K" = 0.1 }\ninput_image = 0.001',
      }) +
      imageBlock({ url, name: 'test/never' }),
  };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
beforeEach(() => {
  provider.answer(paintAsAsked);
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const base = png(96, 64);
const dataUrl = (file: Buffer) => `data:image/png;base64,${file.toString('base64')}`;
const ask = (more: object = {}) => ({
  model: 'test/paint',
  prompt: 'Lower the bar',
  images: [{ b64: dataUrl(base) }],
  ...more,
});
const edit = (body: unknown, headers: Record<string, string> = {}) => spine.post('/image/edit', body, headers);
const last = () => provider.requests.at(-1)!;

async function filesOf(name: string): Promise<Buffer[]> {
  const files = last().form!.getAll(name) as unknown as File[];
  return Promise.all(files.map(async (file) => Buffer.from(await file.arrayBuffer())));
}

async function edited(body: object): Promise<Images> {
  const response = await edit(body);
  const text = await response.text();
  expect(`${response.status} ${text.slice(0, 300)}`).toMatch(/^200 /);
  return JSON.parse(text) as Images;
}

async function refusal(body: unknown, headers: Record<string, string> = {}) {
  const asked = provider.requests.length;
  const response = await edit(body, headers);
  const { error } = (await response.json()) as { error: { code: string; message: string; param: string | null } };
  expect(provider.requests.length).toBe(asked);
  return { status: response.status, ...error };
}

test('an image is edited, reaches the provider as a file, and costs its price', async () => {
  const before = await spine.balance();
  const answer = await edited(ask({ mask: dataUrl(png(96, 64)), seed: 4, watermark: true, n: 2, size: '96x64' }));
  expect(answer).toMatchObject({
    status: 'completed',
    input_images: [{ width: 96, height: 64 }],
    usage: { images: 2, cost: 0.08 },
  });
  expect(before.available - (await spine.balance()).available).toBe(80_000n);
  expect(last().path).toBe('/v1/images/edits');
  expect(last().body).toEqual({
    model: 'upstream-paint',
    prompt: 'Lower the bar',
    n: '2',
    size: '96x64',
    seed: '4',
    watermark: 'true',
    response_format: 'b64_json',
  });
  expect([await filesOf('image'), await filesOf('mask')]).toEqual([[base], [png(96, 64)]]);
});

test('several images are taken in every form, and an edit keeps the shape of the first', async () => {
  const { input_images: inputs } = await edited(
    ask({
      model: 'test/tiers',
      images: [{ b64: base.toString('base64') }, { url: dataUrl(png(64, 64)) }, dataUrl(base)],
    }),
  );
  expect(inputs).toEqual([
    { width: 96, height: 64 },
    { width: 64, height: 64 },
    { width: 96, height: 64 },
  ]);
  expect(last().body['size']).toBe('1216x832');
  expect(await filesOf('image[]')).toEqual([base, png(64, 64), base]);
});

test.each([
  ['test/json', {}, 0.05 + 2 * 0.003],
  ['test/json', { n: 3 }, 3 * 0.05 + 2 * 0.003],
  ['test/json', { mask: dataUrl(base) }, 0.05 + 3 * 0.003],
  ['test/tiers', {}, 0.02 + 2 * 0.001],
  ['test/tiers', { resolution: '2K' }, 0.1 + 2 * 0.001],
  ['test/tiers', { resolution: '2K', quality: 'high' }, 0.2 + 2 * 0.001],
])('at %s an edit %j costs its price', async (model, more, cost) => {
  const answer = await edited(ask({ model, images: [dataUrl(base), dataUrl(base)], ...more }));
  expect(answer.usage.cost).toBeCloseTo(cost, 9);
});

test('a provider that takes JSON gets data URLs', async () => {
  await edited(ask({ model: 'test/json', mask: { b64: base.toString('base64') } }));
  expect(last().form).toBeNull();
  expect(last().body).toMatchObject({ images: [{ image_url: dataUrl(base) }], mask: { image_url: dataUrl(base) } });
});

test('edits that bring no image are not charged for those that they came with', async () => {
  provider.answer((_request, response) => void response.writeHead(500).end());
  const before = await spine.balance();
  expect((await edit(ask({ model: 'test/json' }))).status).toBe(500);
  expect((await spine.balance()).available).toBe(before.available);
});

test.each([
  [{ images: [] }, 'images', /1 to 16 images/],
  [{ images: undefined }, 'images', /images/],
  [{ images: Array.from({ length: 17 }, () => 'AAAA') }, 'images', /1 to 16/],
  [{ images: [{}] }, 'images[0]', /must have either b64 or url/],
  [{ images: [{ b64: 'AAAA', url: 'https://a.example/' }] }, 'images[0]', /must have either b64 or url/],
  [{ images: [{ b64: 'iVBO Rw0K' }] }, 'images[0].b64', /not valid base64/],
  [{ images: [{ b64: Buffer.from('<svg xmlns="x"/>!!').toString('base64') }] }, 'images[0].b64', /PNG, JPEG or WebP/],
  [{ images: [{ url: 'ftp://a.example/a.png' }] }, 'images[0].url', /https URL/],
  [{ images: [{ b64: 'https://a.example/a.png' }] }, 'images[0].b64', /address as url/],
  [{ images: ['data:image/png,plain'] }, 'images[0]', /data URL in base64/],
  [{ images: [{ url: 'https://10.0.0.1/a.png' }] }, 'images[0].url', /could not be fetched/],
  [{ images: [{ url: 'http://127.0.0.1:8402/a.png' }] }, 'images[0].url', /could not be fetched/],
  [{ mask: 'AAAA' }, 'mask', /PNG, JPEG or WebP/],
  [{ n: 7 }, 'n', /from 1 to 6/],
  [{ image: dataUrl(base) }, 'image', /send only images/],
])('%j is refused with its name', async (more, param, message) => {
  expect(await refusal(ask(more))).toMatchObject({
    status: 400,
    param,
    message: expect.stringMatching(message) as string,
  });
});

test('a file that says it has more pixels than providers can hold is refused', async () => {
  const bomb = png(64, 64);
  bomb.writeUInt32BE(100_000, 16);
  bomb.writeUInt32BE(100_000, 20);
  expect(await refusal(ask({ images: [{ b64: bomb.toString('base64') }] }))).toMatchObject({
    status: 400,
    message: expect.stringContaining('100000x100000 pixels') as string,
  });
});

test('a model that edits nothing, and fields that no provider takes, are refused with 422', async () => {
  expect(await refusal(ask({ model: 'test/never' }))).toMatchObject({ status: 422, param: 'images' });
  expect(await refusal(ask({ prompt_extend: true }))).toMatchObject({ status: 422, param: 'prompt_extend' });
});

test('a large image is taken as it is, and a long text elsewhere is refused', async () => {
  const large = Buffer.concat([base, Buffer.alloc(1.5 * 1024 * 1024, 7)]);
  await edited(ask({ images: [{ b64: dataUrl(large) }] }));
  // `toEqual` would look at each byte by itself.
  expect((await filesOf('image')).map((file) => file.equals(large))).toEqual([true]);
  await edited(ask({ model: 'test/json', images: [{ b64: dataUrl(large) }] }));
  expect(last().body['images']).toEqual([{ image_url: dataUrl(large) }]);
  expect(await refusal(ask({ style: 'x'.repeat(300_000) }))).toMatchObject({ status: 400, param: 'style' });
  const standsIn = '\u0000long string 0';
  expect(await refusal(ask({ images: [dataUrl(large), standsIn] }))).toMatchObject({ status: 400, param: 'images[1]' });
  const tooLarge = Buffer.concat([base, Buffer.alloc(20 * 1024 * 1024)]);
  expect(await refusal(ask({ images: [{ b64: dataUrl(tooLarge) }] }))).toMatchObject({
    status: 400,
    param: 'images[0].b64',
  });
});

test('images.edit of the SDK gets its images, and is charged for them', async () => {
  const before = await spine.balance();
  const { data, usage } = await client.images.edit({
    model: 'test/paint',
    prompt: 'Lower the bar',
    image: [await toFile(base, 'base.png', { type: 'image/png' }), await toFile(png(64, 64), 'second.png')],
    mask: await toFile(base, 'mask.png'),
    n: 2,
    background: 'opaque',
    size: '1024x1024',
  });
  expect(data!.map(({ b64_json: image }) => Buffer.from(image!, 'base64').equals(png(1024, 1024)))).toEqual([
    true,
    true,
  ]);
  expect(usage).toMatchObject({ images: 2, cost: 0.08 });
  expect(before.available - (await spine.balance()).available).toBe(80_000n);
  expect(last().body).toMatchObject({ n: '2', background: 'opaque', size: '1024x1024' });
  expect(await filesOf('image[]')).toEqual([base, png(64, 64)]);
  expect(await filesOf('mask')).toEqual([base]);
});

test('a form takes JSON where a part says that it is JSON, as generated clients send it', async () => {
  const json = (value: unknown) => new Blob([JSON.stringify(value)], { type: 'application/json' });
  const form = new FormData();
  form.append('model', 'test/paint');
  form.append('prompt', 'Lower the bar');
  form.append('images', json([{ b64: dataUrl(base) }]));
  form.append('metadata', json({ run: 7 }));
  form.append('n', json(1));
  const edited = await fetch(`${spine.url}/image/edit`, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}` },
    body: form,
  });
  expect(edited.status, await edited.clone().text()).toBe(200);
  expect(((await edited.json()) as { input_images: unknown[] }).input_images).toEqual([{ width: 96, height: 64 }]);
});

test('faults of a form are those that the client knows', async () => {
  const failure = async (more: object): Promise<unknown> =>
    client.images
      .edit({ model: 'test/paint', prompt: 'A', image: await toFile(base, 'a.png'), ...more })
      .catch((error: unknown) => error);
  expect(await failure({ n: 11 })).toMatchObject({ status: 400, param: 'n' });
  expect(await failure({ image: await toFile(Buffer.from('GIF89a'), 'a.gif') })).toMatchObject({
    status: 400,
    param: 'images[0]',
  });
  const form = (type: string, body: string) => spine.post('/images/edits', body, { 'content-type': type });
  const broken = await form('multipart/form-data; boundary=x', '--x\r\nnothing');
  expect([broken.status, await broken.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(/not a valid form/) as string } },
  ]);
  const many = await form(
    'multipart/form-data; boundary=x',
    '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'.repeat(1000),
  );
  expect([many.status, await many.json()]).toMatchObject([
    400,
    { error: { message: expect.stringMatching(/more than 128 parts/) as string } },
  ]);
});

test('a repeat of an edit is answered again, and not charged', async () => {
  const before = await spine.balance();
  const headers = { 'idempotency-key': 'edit-1' };
  const [first, second] = [await edit(ask(), headers), await edit(ask(), headers)];
  expect(second.headers.get('idempotent-replayed')).toBe('true');
  expect(await second.text()).toBe(await first.text());
  expect(before.available - (await spine.balance()).available).toBe(40_000n);
});

test('JSON-RPC edits images', async () => {
  const response = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'images/edit', params: ask() });
  expect(await response.json()).toMatchObject({ result: { status: 'completed', input_images: [{ width: 96 }] } });
});

/** Sends zeros until nobody reads on. */
function endless(response: ServerResponse): void {
  const zeros = Buffer.alloc(256 * 1024);
  const more = () => {
    while (!response.destroyed && response.write(zeros));
  };
  response.on('drain', more);
  more();
}

test('no address leads to this machine or its networks, and nothing is locked for one', async () => {
  let reached = 0;
  const inner = createServer().on('connection', (socket) => {
    reached += 1;
    socket.destroy();
  });
  inner.listen(0);
  await once(inner, 'listening');
  onTestFinished(() => void inner.close());
  const { port } = inner.address() as AddressInfo;
  const before = await spine.balance();
  const hosts = ['127.0.0.1', '[::ffff:7f00:1]', '[::1]', '169.254.169.254', 'localhost', '2130706433', '0x7f.1'];
  const urls = [`http://127.0.0.1:${port}/`, 'https://user:secret@example.com/', 'https://10.0.0.1/a.png'];
  for (const url of [...urls, ...hosts.map((host) => `https://${host}:${port}/a.png`)]) {
    for (const more of [{ images: [{ url }] }, { mask: url }])
      expect(await refusal(ask(more)), url).toMatchObject({
        status: 400,
        message: expect.stringMatching(/^(?:images\[0\]\.url|mask) could not be fetched/) as string,
      });
  }
  expect([reached, await spine.balance()]).toEqual([0, before]);
});

test('a development gateway fetches an image from this machine, once for each request that is not a repeat', async () => {
  let asked = 0;
  const large = Buffer.concat([base, Buffer.alloc(17 * 1024 * 1024)]);
  const files: Server = createServer((request, response) => {
    asked++;
    if (request.url === '/base.png') response.end(base);
    else if (request.url === '/page') response.end('<html>');
    else if (request.url === '/large') response.end(large);
    else if (request.url === '/moved') response.writeHead(302, { location: `${at}/base.png` }).end();
    else if (request.url === '/endless') endless(response);
    else response.writeHead(404).end();
  });
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  const at = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const development = await startSpine({
    mode: 'development',
    toml: UNHURRIED + imageBlock({ url: provider.url, params: 'edits = true', pricing: 'input_image = 0' }),
  });
  try {
    const send = (path: string, headers: Record<string, string> = {}) =>
      development.post('/image/edit', ask({ images: [{ url: at + path }] }), headers);
    const answer = (await (await send('/base.png', { 'idempotency-key': 'u' })).json()) as Images;
    expect(answer.input_images).toEqual([{ width: 96, height: 64 }]);
    expect((await send('/base.png', { 'idempotency-key': 'u' })).status).toBe(200);
    expect(asked).toBe(1);
    for (const [path, message] of [
      ['/gone', /status 404/],
      ['/page', /PNG, JPEG or WebP/],
      ['/moved', /status 302/],
      ['/endless', /more than 20971520 bytes/],
    ] as const) {
      const refused = await send(path);
      expect([refused.status, await refused.json()]).toMatchObject([
        400,
        { error: { param: 'images[0].url', message: expect.stringMatching(message) as string } },
      ]);
    }
    const twice = await development.post(
      '/image/edit',
      ask({ images: [{ url: `${at}/large` }, { url: `${at}/large` }] }),
    );
    expect([twice.status, await twice.json()]).toMatchObject([400, { error: { param: 'images[1].url' } }]);
    expect(await development.faults()).toEqual([]);
  } finally {
    await development.stop();
    files.close();
  }
});

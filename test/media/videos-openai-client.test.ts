import OpenAI from 'openai';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { UNHURRIED } from '../support/spine.ts';
import { tinyMp4 } from './support/tiny-mp4.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';
import { ofFile, spineOfFile } from '../support/of-file.ts';

// Videos as OpenAI's own client uses them, and by JSON-RPC.

let client: OpenAI;
const provider = ofFile(startVideoProvider, (one) => one.close());
const spine = spineOfFile(() => {
  const { url } = provider;
  const tall = videoBlock({ url, name: 'test/tall', lines: 'aspect_ratios = ["9:16", "1:1"]' });
  return { toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${videoBlock({ url })}${tall}` };
});
beforeAll(() => {
  client = new OpenAI({ baseURL: spine.url, apiKey: spine.key, maxRetries: 0 });
});
beforeEach(() => provider.begin(() => ({})));
afterEach(async () => expect(await spine.faults()).toEqual([]));

const sent = () => provider.requests.findLast(({ method }) => method === 'POST')!.body;

async function finished(id: string) {
  await expect.poll(async () => (await client.videos.retrieve(id)).status, { timeout: 60_000 }).toBe('completed');
  return client.videos.retrieve(id);
}

test('videos.create, retrieve and downloadContent', async () => {
  const before = await spine.balance();
  const video = await client.videos.create({
    model: 'test/film',
    prompt: 'A tollgate',
    seconds: '4',
    size: '1280x720',
  });
  expect(video).toMatchObject({
    object: 'video',
    status: 'queued',
    progress: 0,
    model: 'test/film',
    seconds: '4',
    size: '1280x720',
    error: null,
  });
  const done = await finished(video.id);
  expect(done).toMatchObject({ id: video.id, status: 'completed', progress: 100 });
  expect(done.expires_at! - done.completed_at!).toBeGreaterThan(86_000);
  const content = await client.videos.downloadContent(video.id);
  expect(Buffer.from(await content.arrayBuffer())).toEqual(provider.last().file);
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
  expect(sent()).toMatchObject({ seconds: '4', size: '1280x720', prompt: 'A tollgate' });
});

test('the size that is told is the size that the provider is asked for', async () => {
  const { id, size } = await client.videos.create({ model: 'test/tall', prompt: 'A tollgate', seconds: '4' });
  expect([size, sent()['size']]).toEqual(['720x1280', '720x1280']);
  expect((await finished(id)).size).toBe('720x1280');
});

test('a file as input_reference reaches the provider as a file', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const video = await client.videos.create({
    model: 'test/film',
    prompt: 'A tollgate',
    input_reference: new File([png], 'a.png', { type: 'image/png' }),
  });
  expect(sent()).toMatchObject({ input_reference: `<image/png, ${png.length}>`, seconds: '4' });
  await finished(video.id);
});

test('HEAD tells the size of a file and sends nothing of it', async () => {
  const { id } = await client.videos.create({ model: 'test/film', prompt: 'A tollgate' });
  await finished(id);
  const whole = Buffer.from(await (await client.videos.downloadContent(id)).arrayBuffer());
  const ask = (headers: Record<string, string>) =>
    fetch(`${spine.url}/videos/${id}/content`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${spine.key}`, ...headers },
    });
  const head = await ask({});
  expect([head.status, head.headers.get('content-length'), head.headers.get('accept-ranges')]).toEqual([
    200,
    String(whole.length),
    'bytes',
  ]);
  expect((await head.arrayBuffer()).byteLength).toBe(0);
});

test('videos.list shows the own ones, page by page', async () => {
  const other = await spine.tenant('lists-videos', '10');
  const own = new OpenAI({ baseURL: spine.url, apiKey: other.key, maxRetries: 0 });
  const made = new Set<string>();
  for (let count = 0; count < 3; count += 1)
    made.add((await own.videos.create({ model: 'test/film', prompt: `Tollgate ${count}` })).id);
  const listed = new Set<string>();
  for await (const { id } of own.videos.list({ limit: 2 })) listed.add(id);
  expect(listed).toEqual(made);
  const page = await own.videos.list({ limit: 2 }).asResponse();
  const { first_id: first, data } = (await page.json()) as { first_id: string; data: { id: string }[] };
  expect(first).toBe(data[0]!.id);
  for (const id of made)
    await expect.poll(async () => (await own.videos.retrieve(id)).status, { timeout: 60_000 }).toBe('completed');
});

test.each([
  ['after=video_123', 'after', /^after must be the last_id of a page of this list/],
  ['order=asc', 'order', /^order must be desc: the most recently changed videos come first/],
])('a list with %s is refused, and the error names the field', async (query, param, message) => {
  const response = await spine.get(`/videos?${query}`);
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { param, message: expect.stringMatching(message) as string } },
  ]);
  expect((await spine.get('/videos?order=desc')).status).toBe(200);
});

test('videos.delete removes one that goes on, one that is finished and one that failed', async () => {
  const before = await spine.balance();
  const isGone = async (id: string) => {
    await expect(client.videos.retrieve(id)).rejects.toMatchObject({ status: 404, type: 'not_found' });
    await expect(client.videos.downloadContent(id)).rejects.toMatchObject({ status: 404, type: 'not_found' });
    await expect(client.videos.delete(id)).rejects.toMatchObject({ status: 404 });
    expect((await client.videos.list()).data.map((video) => video.id)).not.toContain(id);
    expect((await spine.post('/video/retrieve', { task_id: id })).status).toBe(404);
  };
  provider.begin(() => ({ status: 'in_progress' }));
  const running = await client.videos.create({ model: 'test/film', prompt: 'A tollgate' });
  expect(await client.videos.delete(running.id)).toEqual({ id: running.id, object: 'video.deleted', deleted: true });
  expect(await spine.balance()).toEqual(before);
  await isGone(running.id);
  provider.begin(() => ({ status: 'failed', error: { code: 'moderation', message: 'No' } }));
  const failed = await client.videos.create({ model: 'test/film', prompt: 'A tollgate' });
  await expect.poll(async () => (await client.videos.retrieve(failed.id)).status, { timeout: 60_000 }).toBe('failed');
  await client.videos.delete(failed.id);
  await isGone(failed.id);
  provider.begin(() => ({}));
  const { data: video, response } = await client.videos
    .create({ model: 'test/film', prompt: 'A tollgate' })
    .withResponse();
  await finished(video.id);
  await client.videos.delete(video.id);
  await isGone(video.id);
  // What was charged stays in the books, and is shown.
  expect(before.available - (await spine.balance()).available).toBe(450_000n);
  expect(await spine.generation(response.headers.get('x-generation-id'))).toMatchObject({
    state: 'settled',
    cost_micro_usdc: 450_000,
  });
});

test('a failed video says why, and its content is not found', async () => {
  provider.begin(() => ({ status: 'failed', error: { code: 'moderation', message: 'No' } }));
  const { id } = await client.videos.create({ model: 'test/film', prompt: 'A tollgate' });
  await expect.poll(async () => (await client.videos.retrieve(id)).status, { timeout: 60_000 }).toBe('failed');
  expect((await client.videos.retrieve(id)).error).toEqual({ code: 'moderation', message: 'No' });
  await expect(client.videos.downloadContent(id)).rejects.toMatchObject({ status: 404 });
});

test('an unknown model is 404 in the shape of this API', async () => {
  await expect(client.videos.create({ model: 'test/none', prompt: 'A' })).rejects.toMatchObject({
    status: 404,
    type: 'invalid_model',
  });
});

test.each<[string, object, number, string, RegExp]>([
  ['a length that is not made', { seconds: '5' }, 422, 'seconds', /^422 seconds 5 is not made by \w+; it makes 4, 8$/],
  ['one by OpenRouter’s name', { duration: 5 }, 422, 'duration', /duration 5s is not made by \w+; it makes 4s, 8s/],
  ['a frame inside', { input_reference: 'https://127.0.0.1/a.png' }, 400, 'input_reference', /input_reference/],
  ['no prompt', { prompt: '' }, 400, 'prompt', /only if input_reference is given/],
])('%s is refused by the name that the client sent', async (_what, more, status, param, words) => {
  const asked = client.videos.create({ model: 'test/film', prompt: 'A tollgate', ...more });
  await expect(asked).rejects.toMatchObject({ status, param, message: expect.stringMatching(words) as string });
});

test('an unknown id is refused as the id', async () => {
  const video = { status: 404, param: 'id' };
  await expect(client.videos.retrieve('video_none')).rejects.toMatchObject(video);
  await expect(client.videos.downloadContent('video_none')).rejects.toMatchObject(video);
  await expect(client.videos.delete('video_none')).rejects.toMatchObject(video);
});

test('by JSON-RPC the answers are JSON, with the addresses of the files', async () => {
  let made = 0;
  provider.begin((seconds) => ({ file: tinyMp4(seconds, 500, ++made) }));
  const call = async (method: string, params: object) => {
    const response = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method, params });
    return (await response.json()) as { result: Record<string, unknown> };
  };
  const queued = (await call('video/queue', { model: 'test/film', prompt: 'A', duration: '4s', n: 2 }))
    .result as unknown as Queued;
  const { result } = await call('video/retrieve', { task_id: queued.id, wait_for_final: true });
  expect(result).toMatchObject({ id: queued.id, status: 'completed' });
  const files = result['files'] as readonly { url: string; bytes: number }[];
  for (const [index, { url, bytes }] of files.entries()) {
    const response = await fetch(spine.origin + url, { headers: { authorization: `Bearer ${spine.key}` } });
    expect(Buffer.from(await response.arrayBuffer())).toEqual(tinyMp4(4, 500, index + 1));
    expect(bytes).toBe(tinyMp4(4, 500).length);
  }
});

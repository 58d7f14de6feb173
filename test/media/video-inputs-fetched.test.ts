import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { png } from './support/image-provider.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from './support/video-provider.ts';

// A provider that takes files alone is sent the files that a request names by their addresses. Questions about a video
// are counted apart from calls.

const IMAGE = png(64, 64);
let provider: VideoProvider;
let spine: Spine;
let base: string;
const web = createServer((request, response) => {
  if (request.url === '/page') return void response.end('<html>');
  if (request.url === '/gone') return void response.writeHead(404).end();
  response.end(IMAGE);
});
beforeAll(async () => {
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  base = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  provider = await startVideoProvider();
  const lines = 'durations = ["4s"]\nsupported_params = ["image_url", "reference_image_urls", "end_image"]';
  const files = videoBlock({ url: provider.url, lines });
  spine = await startSpine({
    // Its own machine counts as the public internet.
    mode: 'development',
    toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${files}inputs = "files"\n${videoBlock({ url: provider.url, name: 'test/by-address', lines })}`,
  });
});
afterAll(async () => {
  await spine.stop();
  await provider.close();
  web.close();
});

const queue = (more: object, model = 'test/film') =>
  spine.post('/video/queue', { model, prompt: 'A tollgate', duration: '4s', ...more });

test('it is sent the files, and another the addresses', async () => {
  const asked = { image_url: `${base}/first.png`, reference_image_urls: [`${base}/a.png`] };
  expect((await queue(asked)).status).toBe(200);
  const file = `<image/png, ${IMAGE.length}>`;
  expect(provider.requests.at(-1)!.body).toMatchObject({ input_reference: file, 'reference_images[]': file });
  expect((await queue(asked, 'test/by-address')).status).toBe(200);
  const sent = provider.requests.findLast(({ method }) => method === 'POST')!;
  expect(sent.body).toMatchObject({ input_reference: { image_url: `${base}/first.png` } });
});

test('a name of its own is read like ours', async () => {
  expect((await queue({ end_image: `${base}/last.png`, reference_images: [`${base}/a.png`] })).status).toBe(200);
  const file = `<image/png, ${IMAGE.length}>`;
  expect(provider.requests.at(-1)!.body).toMatchObject({ end_image: file, 'reference_images[]': file });
  const both = await queue({ end_image: `${base}/last.png`, end_image_url: `${base}/first.png` });
  expect([both.status, await both.text()]).toMatchObject([400, expect.stringContaining('different values') as string]);
});

test.each([
  ['gone', /image_url could not be fetched: .*404/],
  ['page', /image_url is not a PNG, JPEG or WebP file/],
])('what cannot be used (%s) is told by its name, and costs nothing', async (path, why) => {
  await spine.quiet();
  const before = await spine.balance();
  const made = provider.jobs.size;
  const response = await queue({ image_url: `${base}/${path}` });
  const { error } = (await response.json()) as { error: { message: string; param: string } };
  expect([response.status, error]).toMatchObject([
    400,
    { param: 'image_url', message: expect.stringMatching(why) as string },
  ]);
  expect([await spine.balance(), provider.jobs.size]).toEqual([before, made]);
  expect(await spine.faults()).toEqual([]);
});

test('questions about a video are counted apart from calls', async () => {
  const slow = await startSpine({
    // It stands still: a rate gives nothing back while a slow machine asks.
    elapsed: () => 0,
    toml: `[limits]\nrequests_per_minute = 1\nburst = 2\n[media]\nfree_bytes_min = 0\n${videoBlock({ url: provider.url })}`,
  });
  try {
    const ask = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
    const { id } = (await (await slow.post('/video/queue', ask)).json()) as { id: string };
    /** Requests that were answered before one was refused. */
    const answered = async (send: () => Promise<Response>) => {
      for (let count = 0; ; count += 1) {
        if ((await send()).status === 429) return count;
      }
    };
    const polls = await answered(() => slow.post('/video/retrieve', { task_id: id }));
    expect(polls).toBeGreaterThan(1);
    expect(await answered(() => slow.post('/video/queue', ask))).toBe(polls - 1);
    expect(await slow.faults()).toEqual([]);
  } finally {
    await slow.stop();
  }
});

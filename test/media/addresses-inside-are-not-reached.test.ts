import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { imageBlock, type ImageProvider, png, startImageProvider } from './support/image-provider.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from './support/video-provider.ts';

// Every field of images and videos that may be an address, at every route: no address of this machine or its networks
// is reached, sent to a provider, or paid for.

let reached = 0;
const inner = createServer((socket) => {
  reached += 1;
  socket.destroy();
});
let painter: ImageProvider;
let filmer: VideoProvider;
let spine: Spine;
let urls: readonly string[];
beforeAll(async () => {
  inner.listen(0);
  await once(inner, 'listening');
  const { port } = inner.address() as AddressInfo;
  const hosts = ['127.0.0.1', '[::1]', '[::ffff:7f00:1]', '2130706433', '0x7f.1', '169.254.169.254', 'localhost'];
  urls = [
    ...hosts.map((host) => `https://${host}:${port}/a.png`),
    `http://127.0.0.1:${port}/a.png`,
    `https://user:secret@127.0.0.1:${port}/a.png`,
    'https://10.0.0.1/a.png',
    `ftp://127.0.0.1:${port}/a.png`,
    'file:///etc/passwd',
  ];
  [painter, filmer] = [await startImageProvider(), await startVideoProvider()];
  const lines =
    'durations = ["4s"]\nsupported_params = ["image_url", "end_image_url", "reference_image_urls", "video_url", "audio_url"]';
  spine = await startSpine({
    toml:
      `${UNHURRIED}[media]\nfree_bytes_min = 0\n` +
      imageBlock({ url: painter.url, params: 'edits = true' }) +
      `${videoBlock({ url: filmer.url, lines })}inputs = "files"\n` +
      videoBlock({ url: filmer.url, name: 'test/by-address', lines }),
  });
});
afterAll(async () => {
  await spine.stop();
  await Promise.all([painter.close(), filmer.close()]);
  inner.close();
});
afterEach(async () => expect(await spine.faults()).toEqual([]));

const edit = (path: string, fields: (url: string) => object) => ({
  path: `/api/v1${path}`,
  body: (url: string) => ({ model: 'test/paint', prompt: 'A tollgate', ...fields(url) }),
});
const film = (field: string, model = 'test/film', path = '/video/queue') => ({
  path: `/api/v1${path}`,
  body: (url: string) => {
    const value = field.endsWith('s') ? [url] : field === 'input_reference' ? { image_url: url } : url;
    return { model, prompt: 'A tollgate', duration: '4s', seconds: '4', [field]: value };
  },
});
const chat = (model: string) => ({
  path: '/api/v1/chat/completions',
  body: (url: string) => ({
    model,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'A tollgate' },
          { type: 'image_url', image_url: { url } },
        ],
      },
    ],
  }),
});
const tool = (service: string, name: string) => ({
  path: `/mcp/${service}`,
  body: (url: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: { prompt: 'A tollgate', images: [url] } },
  }),
});
const agent = (service: string) => ({
  path: `/a2a/${service}`,
  body: (uri: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: {
      message: {
        messageId: randomUUID(),
        role: 'user',
        parts: [
          { kind: 'text', text: 'A tollgate' },
          { kind: 'file', file: { uri, mimeType: 'image/png' } },
        ],
      },
    },
  }),
});

test.each([
  ['an image to edit', edit('/image/edit', (url) => ({ images: [{ url }] }))],
  ['a mask', edit('/image/edit', (url) => ({ images: [{ b64: png(64, 64).toString('base64') }], mask: url }))],
  ['an image of OpenAI’s API', edit('/images/edits', (url) => ({ images: [{ image_url: url }] }))],
  ['a first frame', film('image_url')],
  ['a first frame that the provider would fetch', film('image_url', 'test/by-address')],
  ['a last frame', film('end_image_url', 'test/by-address')],
  ['a picture to go by', film('reference_image_urls', 'test/by-address')],
  ['a video to go on', film('video_url')],
  ['a sound', film('audio_url', 'test/by-address')],
  ['input_reference', film('input_reference', 'test/by-address', '/videos')],
  ['an image model in chat', chat('image/test/paint')],
  ['a video model in chat', chat('video/test/by-address')],
  ['an image model as a tool', tool('image/test/paint', 'generate_image')],
  ['a video model as a tool', tool('video/test/by-address', 'generate_video')],
  ['an image model as an agent', agent('image/test/paint')],
  ['a video model as an agent', agent('video/test/by-address')],
])('%s', async (_what, { path, body }) => {
  const before = await spine.balance();
  const asked = () => [painter.requests.length, filmer.jobs.size];
  const jobs = asked();
  for (const url of urls) {
    const response = await fetch(spine.origin + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${spine.key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body(url)),
    });
    const text = await response.text();
    // JSON-RPC tells its errors, and MCP those of a tool, in an answer of its own.
    const isRefused = response.status === 400 || response.status === 422 || /"isError":true|"error":\{/.test(text);
    expect([isRefused, text], url).toEqual([true, expect.any(String)]);
  }
  expect([reached, asked()]).toEqual([0, jobs]);
  expect(await spine.balance()).toEqual(before);
});

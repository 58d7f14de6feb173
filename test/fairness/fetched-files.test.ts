import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  imageBlock,
  type ImageProvider,
  paintAsAsked,
  png,
  startImageProvider,
} from '../media/support/image-provider.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { startSpine, type Spine } from '../support/spine.ts';

// Files that the gateway fetches from the addresses in a request count as its body does. The memory for bodies is small
// here: 4 MiB, of which an account and a network may use 1 MiB each. Clients come from the networks that
// X-Forwarded-For names.

const MIB = 1024 * 1024;
const SIZE = 900_000;
const PICTURE = Buffer.concat([png(64, 64), Buffer.alloc(SIZE)]).subarray(0, SIZE);

let spine: Spine;
let painter: ImageProvider;
let filmer: VideoProvider;
let at: string;
/** Answers that wait for the test. */
const waiting: ServerResponse[] = [];
const fetched: string[] = [];
const files = createServer(({ url }, response) => {
  fetched.push(url!);
  if (url === '/whole') response.end(PICTURE);
  else if (url === '/chunked') {
    response.write(PICTURE.subarray(0, SIZE / 2));
    response.end(PICTURE.subarray(SIZE / 2));
  } else if (url === '/page') response.end('<html>'.padEnd(SIZE));
  else if (url === '/begun') {
    response.writeHead(200, { 'content-length': SIZE }).write(PICTURE.subarray(0, 10));
    waiting.push(response);
  } else response.writeHead(404).end();
});

beforeAll(async () => {
  painter = await startImageProvider();
  filmer = await startVideoProvider();
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  at = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const lines = 'durations = ["4s"]\nsupported_params = ["image_url"]';
  spine = await startSpine({
    toml:
      `[server]\ntrusted_proxies = ["127.0.0.1"]\n[webhooks]\nallow_private = true\n[media]\nfree_bytes_min = 0\n` +
      `[limits]\nrequests_per_minute = 1000000\nburst = 1000000\nbodies_bytes_max = ${4 * MIB}\nmedia_body_bytes_max = ${MIB}\nchat_body_bytes_max = 262144\nbody_bytes_max = 131072\n` +
      imageBlock({ url: painter.url, params: 'edits = true' }) +
      `${videoBlock({ url: filmer.url, lines })}inputs = "files"\n`,
  });
});
afterAll(async () => {
  await spine.stop();
  files.close();
  files.closeAllConnections();
  await Promise.all([painter.close(), filmer.close()]);
});
afterEach(async () => {
  for (const response of waiting.splice(0)) response.destroy();
  painter.answer(paintAsAsked);
  await held(0);
  expect(await spine.faults()).toEqual([]);
});

/** Resolves when this many bytes are counted. */
async function held(bytes: number): Promise<void> {
  await expect.poll(() => spine.app.server.requestBodies.heldBytes(), { timeout: 30_000, interval: 20 }).toBe(bytes);
}

interface From {
  readonly key?: string;
  readonly from?: string;
  readonly signal?: AbortSignal;
}

const send = (path: string, body: object, { key = spine.key, from = '10.0.0.1', signal }: From = {}) =>
  spine.post(path, body, { authorization: `Bearer ${key}`, 'x-forwarded-for': from }, signal);
const edit = (path: string, from: From = {}, more: object = {}) =>
  send('/image/edit', { model: 'test/paint', prompt: 'x', images: [{ url: at + path }], ...more }, from);

/** Begins an edit whose call runs until the returned function is called. */
async function running(from: From = {}) {
  const asked = Promise.withResolvers<() => void>();
  painter.answer((request, response) => asked.resolve(() => void paintAsAsked(request, response)));
  const before = spine.app.server.requestBodies.heldBytes();
  const answer = edit('/whole', from).catch(() => null);
  const finish = await asked.promise;
  painter.answer(paintAsAsked);
  await held(before + SIZE);
  return { answer, finish };
}

const messageOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string } }).error.message;

/** Sends an image to an image model as an agent. */
async function askAgent(path: string, headers: Record<string, string> = {}, key = spine.key): Promise<string> {
  const parts = [
    { kind: 'text', text: 'x' },
    { kind: 'file', file: { uri: at + path, mimeType: 'image/png' } },
  ];
  const message = { messageId: randomUUID(), role: 'user', parts };
  const response = await fetch(`${spine.origin}/a2a/image/test/paint`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: { message } }),
  });
  return response.text();
}

describe('an image that is fetched for an edit', () => {
  test('counts until its call has ended, also if its client leaves before', async () => {
    const leaving = new AbortController();
    const { answer, finish } = await running({ signal: leaving.signal });
    leaving.abort();
    await answer;
    await held(SIZE);
    finish();
    await held(0);
  });

  test('is not fetched for an account that cannot pay for the edit', async () => {
    for (const [name, usd, type] of [
      ['without-money', '0', 'escrow_not_setup'],
      ['nearly-without', '0.000001', 'insufficient_balance'],
    ] as const) {
      const { key } = await spine.tenant(name, usd);
      fetched.length = 0;
      expect(await (await edit('/whole', { key })).json()).toMatchObject({ error: { type } });
      expect(await askAgent('/whole', {}, key)).toMatch(/never funded|Insufficient balance/);
      expect(fetched).toEqual([]);
    }
  });

  test('counts as soon as its size is known', async () => {
    const answer = edit('/begun');
    await held(SIZE);
    waiting[0]!.destroy();
    expect((await answer).status).toBe(400);
  });

  test('is refused with 429 if the share of its account is used up, and others are served', async () => {
    const { answer, finish } = await running();
    const second = await edit('/whole', { from: '10.0.0.2' });
    expect([second.status, second.headers.get('retry-after'), await messageOf(second)]).toEqual([
      429,
      '2',
      expect.stringContaining('of this account'),
    ]);
    const { key } = await spine.tenant('another', '1');
    expect((await edit('/whole', { key, from: '10.0.0.3' })).status).toBe(200);
    const near = await edit('/whole', { key, from: '10.0.0.1' });
    expect([near.status, await messageOf(near)]).toEqual([429, expect.stringContaining('of this network')]);
    finish();
    expect((await answer)!.status).toBe(200);
  });

  test('is refused with 503 if all memory is used', async () => {
    const calls = [];
    for (const n of [1, 2, 3, 4])
      calls.push(await running({ key: (await spine.tenant(`full-${n}`, '1')).key, from: `10.0.1.${n}` }));
    expect((await edit('/whole', { from: '10.0.1.9' })).status).toBe(503);
    for (const { finish, answer } of calls) {
      finish();
      expect((await answer)!.status).toBe(200);
    }
  });

  test.each([
    ['/page', {}, 400],
    ['/gone', {}, 400],
    ['/chunked', {}, 200],
    ['/whole', { max_cost: 0.000001 }, 422],
    ['/whole', { quote_id: 'none' }, 404],
    ['/whole', {}, 200],
  ])('gives its memory back after %s with %o: %i', async (path, more, status) => {
    expect((await edit(path, {}, more)).status).toBe(status);
    await held(0);
  });
});

test("an image that an agent's client sends to an image model counts, too", async () => {
  const { answer, finish } = await running();
  expect(await askAgent('/whole')).toContain('The large requests of this account');
  finish();
  await answer;
  await held(0);
  expect(await askAgent('/whole')).toContain('image/png');
  await held(0);
  expect(await askAgent('/page')).toContain('is no PNG');
  await held(0);
  expect(await askAgent('/whole', { 'x-max-cost': '0.000001' })).toContain('x-max-cost is 0.000001 USD');
});

test('the frame of a video counts until its provider has it', async () => {
  const film = { model: 'test/film', prompt: 'x', duration: '4s', image_url: `${at}/whole` };
  const { answer, finish } = await running();
  const refused = await send('/video/queue', film);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
  finish();
  await answer;
  const asked = Promise.withResolvers<ServerResponse>();
  filmer.refuse((_request, response) => {
    asked.resolve(response);
    return true;
  });
  const queued = send('/video/queue', film);
  const response = await asked.promise;
  await held(SIZE);
  filmer.refuse(null);
  response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no such film"}}');
  expect((await queued).status).toBe(400);
});

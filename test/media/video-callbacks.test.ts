import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { newDataDirectory } from '../support/data-directory.ts';
import { startSpine, UNHURRIED } from '../support/spine.ts';
import { type Queued, startVideoProvider, videoBlock } from './support/video-provider.ts';

// callback_url: the end of a video is told once, signed, and again where the receiver fails.

const DAY_MS = 86_400_000;

interface Told {
  readonly body: string;
  readonly signature: string;
}

async function startReceiver(statuses: number[]) {
  const told: Told[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      told.push({
        body: Buffer.concat(chunks).toString(),
        signature: String(request.headers['x-tollgate-signature']),
      });
      response.writeHead(statuses.shift() ?? 204).end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { told, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/told` };
}

async function startWorld(privateHosts: boolean) {
  const provider = await startVideoProvider();
  onTestFinished(() => provider.close());
  const dataDir = newDataDirectory();
  const spine = await startSpine({
    dataDir,
    toml:
      `${UNHURRIED}[media]\nfree_bytes_min = 0\n[webhooks]\nallow_private = ${privateHosts}\n` +
      videoBlock({ url: provider.url }),
  });
  onTestFinished(() => spine.stop());
  const queue = (url: string) =>
    spine.post('/video/queue', { model: 'test/film', prompt: 'A tollgate', duration: '4s', callback_url: url });
  /** How long each stored address is kept, in milliseconds from now. */
  const kept = () => {
    const tables = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true });
    const rows = tables.prepare('SELECT expires_at FROM webhooks').all();
    tables.close();
    return rows.map((row) => Number(row['expires_at']) - Date.now());
  };
  return { provider, spine, queue, kept };
}

/** As a receiver checks it. */
function isSigned({ body, signature }: Told, secret: string): boolean {
  const [, time, digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  return digest === createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
}

test('an end is told, signed with the secret of the answer', async () => {
  const { provider, spine, queue } = await startWorld(true);
  const { told, url } = await startReceiver([]);
  const first = (await (await queue(url)).json()) as Queued & { callback_secret: string };
  await spine.post('/video/retrieve', { task_id: first.id, wait_for_final: true });
  await expect.poll(() => told.length, { timeout: 60_000 }).toBe(1);
  expect(isSigned(told[0]!, first.callback_secret)).toBe(true);
  expect(JSON.parse(told[0]!.body)).toMatchObject({
    type: 'video.generation.completed',
    data: { id: first.id, status: 'completed', variants: 1 },
  });
  provider.begin(() => ({ status: 'failed', error: { code: 'moderation', message: 'No' } }));
  const second = (await (await queue(url)).json()) as Queued & { callback_secret: string };
  expect(second.callback_secret).toBe(first.callback_secret);
  await spine.post('/video/retrieve', { task_id: second.id, wait_for_final: true });
  await expect.poll(() => told.length, { timeout: 60_000 }).toBe(2);
  expect(JSON.parse(told[1]!.body)).toMatchObject({
    type: 'video.generation.failed',
    data: { id: second.id, status: 'failed', error: { code: 'moderation', message: 'No' } },
  });
  expect(told[0]!.body).not.toBe(told[1]!.body);
  expect(await spine.faults()).toEqual([]);
});

test('a restricted key is told a secret of its own', async () => {
  const { spine, queue } = await startWorld(true);
  const { told, url } = await startReceiver([]);
  const made = await spine.post('/keys', { name: 'restricted', limit: 1 });
  const { key } = (await made.json()) as { key: string };
  const whole = (await (await queue(url)).json()) as Queued & { callback_secret: string };
  const asked = await spine.post(
    '/video/queue',
    { model: 'test/film', prompt: 'A tollgate', duration: '4s', callback_url: url },
    { authorization: `Bearer ${key}` },
  );
  const its = (await asked.json()) as Queued & { callback_secret: string };
  expect(its.callback_secret).not.toBe(whole.callback_secret);
  for (const { id } of [whole, its]) await spine.post('/video/retrieve', { task_id: id, wait_for_final: true });
  await expect.poll(() => told.length, { timeout: 60_000 }).toBe(2);
  for (const { id, callback_secret: secret } of [whole, its])
    expect(told.filter((each) => isSigned(each, secret)).map(({ body }) => body.includes(id))).toEqual([true]);
  expect(await spine.faults()).toEqual([]);
});

test('an address that is not public is refused before anything is locked', async () => {
  const { provider, spine, queue } = await startWorld(false);
  const before = await spine.balance();
  for (const url of [
    'http://127.0.0.1:1/',
    'https://169.254.169.254/latest',
    'https://localhost/',
    'ftp://a.example/',
  ]) {
    const response = await queue(url);
    const { error } = (await response.json()) as { error: { code: string; param: string } };
    expect([url, response.status, error.code, error.param]).toEqual([url, 400, 'invalid_request', 'callback_url']);
  }
  expect([await spine.balance(), provider.jobs.size]).toEqual([before, 0]);
});

test('an address counts for its account only as long as it is needed', async () => {
  const { provider, spine, queue, kept } = await startWorld(true);
  const { told, url } = await startReceiver([]);
  provider.refuse((_request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"No"}}');
    return true;
  });
  expect((await queue(url)).status).toBe(400);
  expect(kept()).toEqual([]);
  provider.refuse(null);
  expect((await queue(url)).status).toBe(200);
  await expect.poll(() => told.length, { timeout: 60_000 }).toBe(1);
  const [first, ...more] = kept();
  expect([first! > 0, first! <= DAY_MS, more]).toEqual([true, true, []]);
  expect(await spine.faults()).toEqual([]);
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createSdkUpstream } from '#network';
import { createSdkWorkers } from '../../../src/providers/ai-sdk/workers.ts';
import { installHostile } from './support/hostile-package.ts';

// Calls of one process of a package share the bytes of the files that their requests name by their addresses.

const MIB = 1024 * 1024;

async function startFiles() {
  let served = 0;
  const server = createServer(({ url = '' }, response) => {
    response.on('finish', () => (served += 1));
    response.end(Buffer.alloc(Number(url.slice(1)) * MIB));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { served: () => served, of: (mib: number) => `http://127.0.0.1:${port}/${mib}` };
}

function startPackage() {
  const times = { headTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
  const { open, close } = createSdkWorkers({
    ...times,
    connectionsMax: 100,
    wall: 'if_available',
    hidden: [],
    allowPrivate: true,
    log: () => {},
    tell: () => {},
    times: { startMs: 60_000, pingMs: 1_000, stallMs: 60_000 },
  });
  const upstream = createSdkUpstream({ ...times, connectionsMax: 100, open, close });
  onTestFinished(() => upstream.close());
  const sdk = { kind: 'sdk', sdk: 'hostile', settings: {}, secrets: {}, directory: installHostile() };
  return (account: string, deed: string, urls: readonly string[]) => {
    const files = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
    const messages = [{ role: 'user', content: [{ type: 'text', text: deed }, ...files] }];
    const body = JSON.stringify({ model: 'm', messages });
    const exchange = upstream.send(
      { sdk, headers: {} } as never,
      { method: 'POST', path: '/chat/completions', headers: {}, body, listens: false },
      account,
    );
    exchange.head.catch(() => {});
    return exchange;
  };
}

test('an account whose calls hold many files leaves room to others, and gets it again when they end', async () => {
  const { served, of } = await startFiles();
  const send = startPackage();
  const held = send('greedy', 'never', [of(15), of(15)]);
  await expect.poll(served).toBe(2);
  // 34 MiB are free, and it has 30.
  expect((await send('greedy', 'files', [of(10)]).head).status).toBe(429);
  expect((await send('greedy', 'files', [of(1)]).head).status).toBe(200);
  expect((await send('patient', 'files', [of(8), of(8)]).head).status).toBe(200);
  send('other', 'never', [of(15)]);
  await expect.poll(served).toBeGreaterThanOrEqual(6);
  expect((await send('patient', 'files', [of(8)]).head).status).toBe(200);
  held.abort(new Error('it left'));
  await expect.poll(async () => (await send('greedy', 'files', [of(15)]).head).status).toBe(200);
});

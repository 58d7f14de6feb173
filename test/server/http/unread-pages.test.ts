import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '#config';
import { createServer } from '#http';
import { openSocket, readAnswer } from '../../support/raw-http.ts';

const BYTES = 32 * 1024 * 1024;
const TAKEN_BYTES = 1024 * 1024;

async function startPages(clientStallMs: number) {
  const config = loadConfig({
    file: 'none.toml',
    text: '',
    env: { TOLLGATE_ADMIN_KEY: 'admin-key-of-the-tests-0123456789' },
    mode: 'production',
  });
  const server = createServer({ limits: { ...config.limits, clientStallMs }, onError: () => {} });
  const large = Buffer.alloc(BYTES, 'x');
  server.get('/large', (_request, reply) => reply.send(large));
  const text = 'x'.repeat(BYTES);
  server.get('/text', (_request, reply) => reply.send(text));
  server.get('/json', () => ({ text }));
  server.get('/pieces', (_request, reply) => reply.send(Readable.from(Array.from({ length: 32 }, () => large))));
  server.get('/taken', (_request, reply) => reply.send(large.subarray(0, TAKEN_BYTES)));
  server.get('/small', (_request, reply) => reply.send(Buffer.from('small')));
  await server.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => server.close());
  return { server, origin: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}` };
}

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

test.each(['/large', '/text', '/json', '/pieces'])(
  'a client that takes nothing of %s for so long is let go',
  async (path) => {
    const { server, origin } = await startPages(200);
    const connected = once(server.server, 'connection') as Promise<[Socket]>;
    const client = await openSocket(origin);
    onTestFinished(() => void client.destroy());
    const [served] = await connected;
    client.pause();
    client.write(GET(path));
    await once(served, 'close');
    expect(served.bytesWritten).toBeGreaterThan(0);
  },
);

test('a client that takes a large page keeps its connection', async () => {
  const { origin } = await startPages(60_000);
  const client = await openSocket(origin);
  onTestFinished(() => void client.destroy());
  client.write(GET('/taken'));
  expect((await readAnswer(client)).body).toHaveLength(TAKEN_BYTES);
  client.write(GET('/small'));
  expect((await readAnswer(client)).body).toBe('small');
});

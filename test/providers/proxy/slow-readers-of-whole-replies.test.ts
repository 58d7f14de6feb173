import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHttpUpstream } from '#network';
import { watchEnd } from '../../../src/gateway/network/tunnel/http2-streams.ts';
import { modelAt, runProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter } from '../../support/tunnel-router.ts';

// An upstream closes a connection that is idle after its reply, many after 5 seconds. A reader may be slower than that.

let upstream: Server;
let url: string;
/** Resolves when the upstream has closed the connection of its last reply. */
let closed: Promise<unknown>;
let bytes: number;
beforeEach(async () => {
  upstream = createServer({ keepAliveTimeout: 100, keepAliveTimeoutBuffer: 0 }, (request, response) => {
    closed = once(request.socket, 'close');
    response.end(Buffer.alloc(bytes));
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});
afterEach(() => {
  upstream.closeAllConnections();
  upstream.close();
});

/** Time for the end of the connection to arrive here. */
const ARRIVES_MS = 500;

it.each([
  ['GET', 200_000],
  ['POST', 200_000],
  ['POST', 1_000_000],
])('a reply to %s of %i bytes that the gateway reads late is whole', async (method, length) => {
  bytes = length;
  const router = await startTunnelRouter();
  const running = runProxy({ url: router.url, services: [modelAt('files', url)] });
  try {
    const end = await router.next();
    await end.accept();
    const path = { ':method': method, ':path': '/model/files/chat/completions' };
    const stream = method === 'GET' ? end.open(path) : end.open(path, '{}');
    const isWhole = watchEnd(stream);
    stream.on('error', () => {});
    await once(stream, 'response');
    if (length < 256 * 1024) await closed;
    await pause(ARRIVES_MS);
    let arrived = 0;
    stream.on('data', (chunk: Buffer) => (arrived += chunk.byteLength));
    await new Promise((resolve) => stream.once('close', resolve));
    expect({ arrived, isWhole: isWhole() }).toEqual({ arrived: length, isWhole: true });
  } finally {
    running.proxy.kill();
    await router.stop();
  }
});

it.each([66_000, 100_000, 131_072, 200_000])(
  'a reply of %i bytes that comes straight from its upstream and is read late is whole',
  async (length) => {
    bytes = length;
    const direct = createHttpUpstream({ headTimeoutMs: 10_000, idleTimeoutMs: 10_000, connectionsMax: 1 });
    try {
      const request = { method: 'GET', path: '/', headers: {}, body: null, listens: false } as const;
      const reply = await direct.send({ baseUrl: url, headers: {} } as never, request, 'account').head;
      await closed;
      await pause(ARRIVES_MS);
      let arrived = 0;
      for (let chunks = await reply.read(); chunks !== null; chunks = await reply.read())
        arrived += chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      expect(arrived).toBe(length);
    } finally {
      await direct.close();
    }
  },
);

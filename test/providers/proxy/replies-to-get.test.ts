import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { watchEnd } from '../../../src/gateway/network/tunnel/http2-streams.ts';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

// Node resets a reply whose request was not read, possibly before the end of the reply is sent. A request without a
// body has nothing to read.

const BYTES = 200_000;
let upstream: Server;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
beforeEach(async () => {
  upstream = createServer((_request, response) => response.end(Buffer.alloc(BYTES)));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  router = await startTunnelRouter();
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  running = runProxy({ url: router.url, services: [modelAt('files', url)] });
  end = await router.next();
  await end.accept();
});
afterEach(async () => {
  running.proxy.kill();
  await router.stop();
  upstream.closeAllConnections();
  upstream.close();
});

it('each of many replies to GET ends as its upstream ended it', async () => {
  const ask = async () => {
    const stream = end.open({ ':method': 'GET', ':path': '/model/files/chat/completions' });
    const isWhole = watchEnd(stream);
    let bytes = 0;
    stream.on('data', (chunk: Buffer) => (bytes += chunk.byteLength));
    await once(stream, 'close');
    return { bytes, isWhole: isWhole() };
  };
  const replies = await Promise.all(Array.from({ length: 100 }, ask));
  expect(replies).toEqual(replies.map(() => ({ bytes: BYTES, isWhole: true })));
});

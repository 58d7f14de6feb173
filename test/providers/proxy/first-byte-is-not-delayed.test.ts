import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

let upstream: Server;
let arrived: PromiseWithResolvers<ServerResponse>;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
beforeEach(async () => {
  arrived = Promise.withResolvers();
  upstream = createServer((_request, response) => arrived.resolve(response));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  router = await startTunnelRouter();
  running = runProxy({
    url: router.url,
    services: [modelAt('m', `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`)],
  });
  end = await router.next();
  await end.accept();
});
afterEach(async () => {
  running.proxy.kill();
  await router.stop();
  upstream.closeAllConnections();
  upstream.close();
});

it('passes the head, and each event, when it comes and not when the next one comes', async () => {
  const stream = end.open({ ':path': '/model/m/chat/completions' }, '{"stream":true}');
  const response = await arrived.promise;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  const [headers] = (await once(stream, 'response')) as [{ ':status': number; 'content-type': string }];
  expect(headers).toMatchObject({ ':status': 200, 'content-type': 'text/event-stream' });
  for (const event of ['data: 1\n\n', 'data: {"ha', 'lf"}\n\ndata: [DONE]\n\n']) {
    response.write(event);
    const [chunk] = (await once(stream, 'data')) as [Buffer];
    expect(chunk.toString()).toBe(event);
  }
  response.end();
  await once(stream, 'end');
});

it('begins the upstream request before a long body is complete', async () => {
  const stream = end.open({ ':path': '/model/m/chat/completions' });
  stream.write(Buffer.alloc(200_000));
  const response = await arrived.promise;
  response.end('early');
  const [chunk] = (await once(stream, 'data')) as [Buffer];
  expect(chunk.toString()).toBe('early');
  stream.end();
});

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { readReply, startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

// As test/spine/idle-connections-that-close.test.ts, behind a proxy. The gateway says what may be repeated.

let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
const bodies: string[] = [];
const served = new WeakSet<Socket>();
/** Closes each connection at its second request. */
const server = createServer((request, response) => {
  let body = '';
  request.on('data', (part: Buffer) => (body += part.toString()));
  request.on('end', () => {
    if (served.has(request.socket)) return void request.socket.end();
    served.add(request.socket);
    bodies.push(body);
    response.end(JSON.stringify(request.headers));
  });
});

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  router = await startTunnelRouter();
  running = runProxy({
    url: router.url,
    services: [modelAt('closing', `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)],
  });
  end = await router.next();
  await end.accept();
});
afterAll(async () => {
  running.proxy.kill();
  await router.stop();
  server.close();
  server.closeAllConnections();
});

const call = async (body: string, headers: Record<string, string> = {}) => {
  const reply = await readReply(end.open({ ':path': '/model/closing/chat/completions', ...headers }, body));
  return { status: reply.status, text: reply.body.toString() };
};

it.each([
  [{ 'x-tollgate-repeatable': '1' }, 200],
  [{}, 502],
])('with %j a call that meets a closing gets %d', async (headers, status) => {
  expect((await call('first')).status).toBe(200);
  bodies.length = 0;
  const again = await call('second', headers);
  expect(again.status).toBe(status);
  expect(bodies).toEqual(status === 200 ? ['second'] : []);
  expect(again.text).not.toContain('x-tollgate-repeatable');
});

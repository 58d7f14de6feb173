import { once } from 'node:events';
import { constants } from 'node:http2';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

let provider: TestProvider;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
beforeEach(async () => {
  provider = await startProvider();
  router = await startTunnelRouter();
  running = runProxy({ url: router.url, services: [modelAt('m', provider.url)] });
  end = await router.next();
  await end.accept();
});
afterEach(async () => {
  running.proxy.kill();
  await Promise.all([router.stop(), provider.stop()]);
});

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const PATH = { ':path': '/model/m/chat/completions', 'content-type': 'application/json' };
const body = (command: string) =>
  JSON.stringify({ model: 'test/model', stream: true, messages: [{ role: 'user', content: command }] });

it('in the middle of a reply', async () => {
  const stream = end.open(PATH, body('!token-ms:5 !tokens:100000'));
  await once(stream, 'data');
  stream.close(constants.NGHTTP2_CANCEL);
  await provider.settled(1);
  expect(provider.log[0]!.end).toBe('client_closed');
});

it('before the head of the reply', async () => {
  provider.hold(new Promise(() => {}));
  const stream = end.open(PATH, body('hello'));
  while (provider.log.length === 0) await end.call({ ':path': '/model/none' });
  stream.close(constants.NGHTTP2_CANCEL);
  while ((await provider.connections()) > 0) await end.call({ ':path': '/model/none' });
});

it('when the tunnel is cut', async () => {
  const stream = end.open(PATH, body('!token-ms:5 !tokens:100000'));
  await once(stream, 'data');
  end.socket.terminate();
  await provider.settled(1);
  expect(provider.log[0]!.end).toBe('client_closed');
});

it('thousands at a time, and the tunnel stays', async () => {
  for (let round = 0; round < (DEEP ? 100 : 9); round += 1) {
    const streams = Array.from({ length: 150 }, () => end.open(PATH, body('!token-ms:50')));
    await Promise.all(
      streams.map(async (stream, index) => {
        if (index % 2 === 0) await once(stream, 'response');
        const gone = once(stream, 'close');
        stream.close(constants.NGHTTP2_CANCEL);
        await gone;
      }),
    );
  }
  const reply = await end.call(PATH, body('hello'));
  expect(reply.status).toBe(200);
  expect(running.lines.filter(({ level }) => level === 'warn')).toEqual([]);
});

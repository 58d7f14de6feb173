import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startFirehose, type Firehose } from '../../support/firehose.ts';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import { startProvider, type TestProvider } from '../../support/provider.ts';
import { startTunnelRouter, type RouterEnd, type TunnelRouter } from '../../support/tunnel-router.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const BUSY = DEEP ? 500 : 60;
const MIB = 1024 * 1024;
/** Of 32 KiB: by day more than twice what may be held. */
const EVENTS = DEEP ? 4_000 : 1_000;
const EVENT_BYTES = 32_768;

let firehose: Firehose;
let provider: TestProvider;
/** Takes connections and reads nothing of them. */
let deaf: Server;
let router: TunnelRouter;
let running: RunningProxy;
let end: RouterEnd;
beforeEach(async () => {
  firehose = await startFirehose({ events: EVENTS, eventBytes: EVENT_BYTES });
  provider = await startProvider({ logMax: 0 });
  deaf = createServer((request) => request.pause());
  deaf.listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  router = await startTunnelRouter();
  const deafUrl = `http://127.0.0.1:${(deaf.address() as AddressInfo).port}`;
  running = runProxy({
    url: router.url,
    services: [modelAt('flood', firehose.url), modelAt('small', provider.url), modelAt('deaf', deafUrl)],
  });
  end = await router.next();
  await end.accept();
});
afterEach(async () => {
  running.proxy.kill();
  await Promise.all([router.stop(), firehose.stop(), provider.stop()]);
  deaf.closeAllConnections();
  deaf.close();
});

const chat = JSON.stringify({ model: 'test/model', stream: true, messages: [{ role: 'user', content: 'hello' }] });
const small = async () => {
  const reply = await end.call({ ':path': '/model/small/chat/completions', 'content-type': 'application/json' }, chat);
  expect(reply.body.toString()).toContain('[DONE]');
};
const busy = async () => {
  for (let done = 0; done < BUSY; done += 20) await Promise.all(Array.from({ length: 20 }, small));
};

it('a reader that stalls stops its upstream and nothing else, and gets every byte once it reads', async () => {
  const stream = end.open({ ':path': '/model/flood/chat/completions' }, '{}');
  await once(stream, 'response');
  for (let before = -1; firehose.sent.bytes !== before;) {
    before = firehose.sent.bytes;
    await busy();
    // Socket buffers of the kernel, one stream's window, and a little in each process.
    expect(firehose.sent.bytes).toBeLessThan(16 * MIB);
  }

  let bytes = 0;
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(stream, 'end');
  expect(bytes).toBeGreaterThan(EVENTS * EVENT_BYTES);
  expect(firehose.sent.finished).toBe(1);
});

it('an upstream that does not read holds its sender back and nobody else', async () => {
  const stream = end.open({ ':path': '/model/deaf/chat/completions' });
  const chunk = Buffer.alloc(64 * 1024);
  let written = 0;
  let taken = 0;
  const pour = () => {
    while (written - taken < 2 * chunk.length && stream.writable) {
      written += chunk.length;
      stream.write(chunk, () => {
        taken += chunk.length;
        pour();
      });
    }
  };
  pour();
  for (let before = -1; taken !== before;) {
    before = taken;
    await busy();
    // Socket buffers of the kernel, one stream's window, and a little in each process.
    expect(taken).toBeLessThan(16 * MIB);
  }
  stream.close(8);
});

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { modelAt, runProxy, type RunningProxy } from '../../support/provider-proxy.ts';
import {
  startTunnelRouter,
  type RouterEnd,
  type TunnelRouter,
  type TunnelRouterOptions,
} from '../../support/tunnel-router.ts';

let router: TunnelRouter | null = null;
let running: RunningProxy;
afterEach(async () => {
  running.proxy.kill();
  await router?.stop();
  router = null;
});

const dial = (url: string, options = {}) => {
  running = runProxy({ url, services: [modelAt('m', 'http://127.0.0.1:9/v1')], options });
};
async function start(options: TunnelRouterOptions = {}): Promise<RouterEnd> {
  router = await startTunnelRouter(options);
  dial(router.url, { random: () => 0 });
  return router.next();
}
/** Says what is of no type of the wire. */
const say = (end: RouterEnd, message: unknown) => end.say(message as never);
const WELCOME = { type: 'welcome', provider: 'p', account: 'a', challenge: 'c', version: '1' };
/** To JSON it is an object, to `String` an error. */
const NO_TEXT = { toString: null, valueOf: null };

describe('a router that says what is not of the wire', () => {
  it('refuses with what are no problems and no text: code 1 all the same', async () => {
    const end = await start();
    say(end, { type: 'refused', message: NO_TEXT, problems: [null, 7, { key: NO_TEXT, wrong: 'w' }] });
    expect(await running.proxy.closed).toBe(1);
    expect(await running.logged('the router refused')).toMatchObject({ key: '', wrong: 'w', right: '' });
  });

  it('names as registered what are no names: they are passed over', async () => {
    const end = await start();
    say(end, WELCOME);
    await end.heard();
    say(end, { type: 'registered', revision: 1, services: [NO_TEXT, 'm'] });
    expect(await running.logged('registered')).toMatchObject({ service: 'm' });
    await running.logged('ready: calls can come');
  });

  it.each([
    { provider: 7 },
    { challenge: undefined },
    { challenge: NO_TEXT },
    { challenge: 'c\nDocument SHA-256: 0' },
    { challenge: 'c'.repeat(129) },
  ])('gets no signature for a welcome with %j', async (wrong) => {
    const end = await start();
    say(end, { ...WELCOME, ...wrong });
    expect(await running.logged('no connection to the router')).toMatchObject({
      why: 'the welcome of the router is not complete',
    });
    await end.closed;
  });
});

describe('a router that says too much', () => {
  it('gets one signature a connection, and one list of services into the log', async () => {
    const end = await start();
    const registered = { type: 'registered', revision: 1, services: ['m'] };
    for (let again = 0; again < 50; again += 1) {
      say(end, { ...WELCOME, challenge: `c${again}` });
      say(end, registered);
    }
    await end.heard();
    // Whatever was said is heard by the time that a call is answered.
    await end.call({ ':path': '/model/none' });
    expect(running.lines.filter(({ msg }) => msg === 'connected to the router')).toHaveLength(1);
    expect(running.lines.filter(({ msg }) => msg === 'registered')).toHaveLength(1);
  });

  it('gets no more problems into the log than a file can have', async () => {
    const end = await start();
    say(end, {
      type: 'refused',
      message: 'no',
      problems: Array.from({ length: 50_000 }, () => ({ key: 'k', wrong: 'w', right: 'r' })),
    });
    expect(await running.proxy.closed).toBe(1);
    expect(running.lines.filter(({ msg }) => msg === 'the router refused')).toHaveLength(10_000);
  });
});

it('a router that always stops is dialled ever more seldom', async () => {
  router = await startTunnelRouter();
  dial(router.url, { random: () => 0.01 });
  const waits: unknown[] = [];
  for (let time = 0; time < 8; time += 1) {
    (await router.next()).say({ type: 'draining' });
    waits.push(
      (await running.logged('the router is shutting down; running calls continue, and the proxy reconnects'))[
        'again_in_ms'
      ],
    );
  }
  expect(waits).toEqual([2, 5, 10, 20, 40, 80, 150, 150]);
});

it('a time to come back that has passed already hurries nobody', async () => {
  router = await startTunnelRouter({
    reject: () => ({ status: 503, body: '{}', headers: { 'retry-after': '-1000000' } }),
  });
  dial(router.url, { random: () => 0.01 });
  const waits: unknown[] = [];
  for (let time = 0; time < 4; time += 1)
    waits.push((await running.logged('the router does not accept a connection now'))['again_in_ms']);
  expect(waits).toEqual([2, 5, 10, 20]);
});

describe('a control stream that is over as soon as it is opened', () => {
  let server: Server;
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it('loses the connection, and nothing else', async () => {
    const frame = (type: number, flags: number, stream: number, payload = Buffer.alloc(0)) => {
      const head = Buffer.alloc(9);
      head.writeUIntBE(payload.length, 0, 3);
      head.writeUInt8(type, 3);
      head.writeUInt8(flags, 4);
      head.writeUInt32BE(stream, 5);
      return Buffer.concat([head, payload]);
    };
    const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
    const fields = { ':method': 'POST', ':path': '/control', ':scheme': 'http', ':authority': 'tunnel' };
    const block = Buffer.concat(
      Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]),
    );
    const CANCEL = Buffer.from([0, 0, 0, 8]);
    const opened = Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(4, 0, 0),
      frame(1, 4, 1, block),
      frame(3, 0, 1, CANCEL),
    ]);
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const sockets = new WebSocketServer({ server, handleProtocols: ([first]) => first ?? false });
    sockets.on('connection', (socket) => socket.send(opened));
    dial(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { random: () => 0 });
    for (let time = 0; time < 2; time += 1)
      expect(await running.logged('no connection to the router')).toMatchObject({
        why: 'the router closed the control stream',
      });
  });
});

import { once } from 'node:events';
import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { openControl } from '../../../../src/gateway/network/tunnel/control-stream.ts';
import { CONTROL_LINE_BYTES_MAX, TUNNEL_MESSAGE_BYTES_MAX } from '../../../../src/gateway/network/tunnel-wire.ts';
import { documentOf, type TunnelPeer } from '../../../support/tunnel-peer.ts';
import { startWorld, textOf, until, type World } from './tunnel-world.ts';
import { solanaWallet } from '../../../support/wallets.ts';

const serve = (stream: import('node:http2').ServerHttp2Stream) => (
  stream.respond({ ':status': 200 }),
  void stream.end('fine')
);

/** What is said ends this connection, with the reason, and no other. */
async function endsOnlyItself(world: World, abuse: (peer: TunnelPeer) => void, reason: RegExp): Promise<void> {
  const [peer, other] = [await world.peer({}, 'abuser/model'), await world.peer({ serve })];
  abuse(peer);
  expect(await peer.closed).toMatchObject({ code: 1008, reason: expect.stringMatching(reason) });
  expect((await textOf(world.send(other.welcome.provider))).text).toBe('fine');
  expect(world.tunnels.count().connections).toBe(1);
}

test.each([
  ['what is no JSON', 'hello\n', /not JSON/],
  ['JSON that is no message', '[1]\n', /no message/],
  ['a message without a type', '{"type":7}\n', /no message/],
  ['a registration without a document', '{"type":"register","router":"x","signature":null}\n', /document/],
  ['bytes', Buffer.from([0, 255, 254, 10]), /not JSON/],
  [
    'nesting that is slow to parse',
    `{"type":"later","deep":${'['.repeat(3_000)}${']'.repeat(3_000)}}\n`,
    /more structure/,
  ],
  [
    'keys that are slow to parse',
    `{"type":"later",${Array.from({ length: 2_000 }, (_, key) => `"${key}":0`).join()}}\n`,
    /more structure/,
  ],
])('%s on the control stream ends the connection', async (_what, said, reason) => {
  await endsOnlyItself(await startWorld(), (peer) => peer.say(said), reason);
});

test('a line without end ends the connection once it is too long', async () => {
  const world = await startWorld();
  await endsOnlyItself(
    world,
    (peer) => {
      for (let sent = 0; sent <= CONTROL_LINE_BYTES_MAX; sent += 65_536) peer.say(Buffer.alloc(65_536, '1'));
    },
    /longer than 4194304 bytes/,
  );
});

test('registrations beyond the budget of their provider wait, and a new connection does not renew it', async () => {
  const world = await startWorld();
  const other = await world.peer({ serve });
  const wallet = solanaWallet();
  const refused = () => world.told.filter((word) => word === 'refused').length;
  const flood = async (isDone: () => boolean) => {
    const { say, kill } = await world.dial({ wallet });
    for (let i = 0; i < 80; i++)
      say({ type: 'register', document: JSON.stringify(documentOf('a/b', `N${i}`)), router: 'x', signature: null });
    await until(isDone);
    kill();
  };
  const began = performance.now();
  await flood(() => refused() >= 80);
  // The budget has 118 of these, and two more in each second.
  await flood(() => refused() >= 124);
  expect(performance.now() - began).toBeGreaterThan(2_500);
  expect((await textOf(world.send(other.welcome.provider))).text).toBe('fine');
});

test('a proxy that does not read what it is told is ended, before that fills the memory', async () => {
  const proxy = createServer().listen(0, '127.0.0.1');
  // It takes the first 64 KiB, and waits with the rest until somebody reads.
  proxy.on('stream', (stream: ServerHttp2Stream) => stream.respond({ ':status': 200 }));
  await once(proxy, 'listening');
  const session = connect(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    proxy.close();
  });
  const opened = Promise.withResolvers<void>();
  const ends: string[] = [];
  const control = openControl(session, {
    onOpen: opened.resolve,
    message: async () => {},
    ended: (reason) => ends.push(reason),
  });
  await opened.promise;
  const tell = (bytes: number) => control.say({ type: 'registered', revision: 1, services: ['x'.repeat(bytes)] });
  for (let told = 0; told < CONTROL_LINE_BYTES_MAX / 2; told += 65_536) tell(65_536);
  expect(ends).toEqual([]);
  for (let told = 0; told < CONTROL_LINE_BYTES_MAX && ends.length === 0; told += 65_536) tell(65_536);
  expect(ends).toEqual(['the proxy does not read its control stream']);
});

test('WebSocket pings without end end the connection', async () => {
  await endsOnlyItself(
    await startWorld(),
    ({ socket }) => {
      // More than the limit takes in while this machine is slow to read them.
      for (let i = 0; i < 2_000; i++) socket.ping();
    },
    /more than 100 WebSocket pings at once/,
  );
});

test('messages of a type that is not known, and empty lines, are passed over', async () => {
  const world = await startWorld();
  const peer = await world.dial({ serve });
  peer.say('\n\r\n{"type":"of a later version"}\n');
  expect(await peer.register()).toMatchObject({ type: 'registered' });
  expect((await textOf(world.send(peer.welcome.provider))).text).toBe('fine');
});

test('a text message, and one that is too long, end the connection', async () => {
  const world = await startWorld();
  const text = await world.peer({}, 'a/model');
  text.socket.send('hello');
  await text.closed;
  const long = await world.peer({}, 'b/model');
  long.socket.send(Buffer.alloc(TUNNEL_MESSAGE_BYTES_MAX + 1));
  expect((await long.closed).code).toBe(1009);
  expect(world.tunnels.count().connections).toBe(0);
});

test('bytes that are no HTTP/2 end the connection', async () => {
  const world = await startWorld();
  const peer = await world.peer();
  peer.socket.send(Buffer.alloc(1_000, 'x'));
  await peer.closed;
  expect(world.told.at(-1)).toMatch(/^left the tunnel broke/);
});

test('a proxy that opens no HTTP/2 is given up in time', async () => {
  const world = await startWorld({ limits: { handshakeMs: 2_000 } });
  const text = await world.key();
  const socket = new WebSocket(`${world.url.replace('http', 'ws')}/api/v1/provider/tunnel`, ['tollgate.tunnel.v1'], {
    headers: { 'x-api-key': text },
  });
  const reason = await new Promise<string>((resolve) => socket.on('close', (_code, why) => resolve(String(why))));
  expect(reason).toMatch(/did not open its side/);
});

test('a proxy that says again and again that it drains is told of once', async () => {
  const world = await startWorld();
  const peer = await world.peer();
  peer.say('{"type":"draining"}\n'.repeat(1_000));
  peer.say('no JSON\n');
  await peer.closed;
  expect(world.told.filter((word) => word === 'draining')).toHaveLength(1);
});

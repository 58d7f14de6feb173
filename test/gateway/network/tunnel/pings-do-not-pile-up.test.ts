import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createSocketStream, SOCKET_OPTIONS } from '../../../../src/gateway/network/tunnel/socket-stream.ts';
import { until } from './tunnel-world.ts';

const PING = Buffer.concat([Buffer.from([0x89, 0x80 | 125, 0, 0, 0, 0]), Buffer.alloc(125, 'a')]);
const LAST = Buffer.concat([Buffer.from([0x89, 0x80 | 4, 0, 0, 0, 0]), Buffer.from('last')]);
const GROUP = 1_000;
/** Their answers are far more than two kernels hold for a reader that does not read. */
const GROUPS = 300;

test('a peer that pings without end and reads nothing leaves one answer waiting; the newest ping is answered', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...SOCKET_OPTIONS });
  await once(server, 'listening');
  const accepted = once(server, 'connection').then(([socket]) => socket as WebSocket);
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    client.terminate();
    for (const socket of server.clients) socket.terminate();
    await new Promise((resolve) => server.close(resolve));
  });
  const socket = await accepted;
  createSocketStream(socket).on('error', () => {});
  if (client.readyState !== client.OPEN) await once(client, 'open');
  const wire = (client as unknown as { readonly _socket: Socket })._socket;
  wire.pause();

  let heard = 0;
  socket.on('ping', () => (heard += 1));
  let most = 0;
  const group = Buffer.concat(Array<Buffer>(GROUP).fill(PING));
  for (let sent = 1; sent <= GROUPS; sent += 1) {
    wire.write(group);
    await until(() => heard === sent * GROUP);
    most = Math.max(most, socket.bufferedAmount);
  }
  expect(most).toBeLessThan(1_024);

  const answered = new Promise<void>((resolve) => client.on('pong', (data) => data.toString() === 'last' && resolve()));
  wire.write(LAST);
  wire.resume();
  await answered;
});

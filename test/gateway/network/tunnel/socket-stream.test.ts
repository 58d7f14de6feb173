import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createSocketStream, type SocketStream } from '../../../../src/gateway/network/tunnel/socket-stream.ts';
import { until } from './tunnel-world.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** A stream on the client's end of a WebSocket that is not open yet, and the other end once it is. */
async function startPair(): Promise<{
  readonly stream: SocketStream;
  readonly client: WebSocket;
  readonly opened: Promise<WebSocket>;
}> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  await once(server, 'listening');
  const opened = once(server, 'connection').then(([socket]) => socket as WebSocket);
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    perMessageDeflate: false,
  });
  const stream = createSocketStream(client);
  stream.on('error', () => {});
  onTestFinished(async () => {
    client.terminate();
    for (const socket of server.clients) socket.terminate();
    await new Promise((resolve) => server.close(resolve));
  });
  return { stream, client, opened };
}

test('what is written before the socket is open is sent', async () => {
  const { stream, opened } = await startPair();
  stream.write('early');
  const [message] = (await once(await opened, 'message')) as [Buffer];
  expect(message.toString()).toBe('early');
});

test('what is written at once is one message, and no message is long', async () => {
  const { stream, opened } = await startPair();
  const server = await opened;
  const lengths: number[] = [];
  server.on('message', (message: Buffer) => lengths.push(message.byteLength));
  stream.cork();
  for (const _ of Array(40)) stream.write(Buffer.alloc(9));
  stream.uncork();
  await until(() => lengths.length > 0);
  expect(lengths).toEqual([360]);
  lengths.length = 0;
  stream.cork();
  for (const _ of Array(20)) stream.write(Buffer.alloc(16 * KIB));
  stream.uncork();
  await until(() => lengths.reduce((sum, length) => sum + length, 0) === 320 * KIB);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(64 * KIB);
});

test('writes are done while little waits, although the other end reads nothing: an HTTP/2 session reads only when its writes are done', async () => {
  const { stream, client, opened } = await startPair();
  (await opened).pause();
  const next = (error?: Error | null) => void (error || stream.write(Buffer.alloc(64 * KIB), next));
  next();
  // Beyond what the kernel takes.
  await until(() => client.bufferedAmount > 7 * MIB);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(client.bufferedAmount).toBeLessThan(9 * MIB);
});

test('a reader that stops holds the other end back', async () => {
  const { stream, opened } = await startPair();
  const server = await opened;
  stream.pause();
  let sent = 0;
  const send = () => server.send(Buffer.alloc(64 * KIB), (error) => !error && (sent++, send()));
  send();
  let before = -1;
  while (sent !== before) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(sent).toBeLessThan(64 * 16);
  let read = 0;
  stream.on('data', (chunk: Buffer) => (read += chunk.byteLength));
  stream.resume();
  await until(() => read > (before + 10) * 64 * KIB);
});

test('one that is deaf drops what comes, says what it has to say, and closes with a close frame', async () => {
  const { stream, client, opened } = await startPair();
  const server = await opened;
  await until(() => client.readyState === client.OPEN);
  let read = 0;
  stream.on('data', (chunk: Buffer) => (read += chunk.byteLength));
  stream.deafen();
  server.send(Buffer.alloc(100_000));
  stream.write('last words');
  const [message] = (await once(server, 'message')) as [Buffer];
  expect(message.toString()).toBe('last words');
  const closed = once(server, 'close') as Promise<[number]>;
  stream.destroy();
  expect((await closed)[0]).toBe(1005);
  expect(read).toBe(0);
});

test('one whose other end does not close is gone all the same', async () => {
  const { stream, client, opened } = await startPair();
  (await opened).pause();
  await until(() => client.readyState === client.OPEN);
  stream.destroy();
  await once(client, 'close');
});

import { createServer as createNetServer, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createGuardedFetch } from '../../../../../src/gateway/network/upstream/guarded-fetch.ts';
import { listenOn } from './receiver.ts';

const fetch = createGuardedFetch({ allowPrivate: true });
const origin = 'http://127.0.0.1';

/** A server that does with each connection what it is told, and the sockets that it still has. */
async function listenRaw(onSocket: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const closed = Promise.withResolvers<void>();
  const server = createNetServer((socket) => {
    sockets.add(socket);
    socket
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(socket);
        closed.resolve();
      });
    socket.resume();
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `${origin}:${(server.address() as AddressInfo).port}/`, closed: closed.promise, sockets };
}

test('a reply comes whole, with its status and headers', async () => {
  const { origin: url } = await listenOn('127.0.0.1', (request, response) => {
    request.pipe(response.writeHead(201, { 'x-path': request.url }));
  });
  const reply = await fetch(`${url}/a?b=1`, { method: 'POST', body: 'hello', timeoutMs: 5_000, bodyBytesMax: 5 });
  expect(reply).toMatchObject({ status: 201, headers: { 'x-path': '/a?b=1' } });
  expect(reply.body.toString()).toBe('hello');
});

test('a body that is too long is a failure, and its connection ends', async () => {
  const receiver = await listenRaw((socket) => void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n123456`));
  await expect(fetch(receiver.url, { timeoutMs: 5_000, bodyBytesMax: 5 })).rejects.toThrow('more than 5 bytes');
  await receiver.closed;
});

test('a body that never ends is nobody’s concern where only the status counts', async () => {
  const receiver = await listenRaw(
    (socket) => void socket.write('HTTP/1.1 204 OK\r\ncontent-length: 100000\r\n\r\nabc'),
  );
  expect((await fetch(receiver.url, { timeoutMs: 5_000, bodyBytesMax: 0 })).status).toBe(204);
  await receiver.closed;
});

test('a head that is too long is a failure', async () => {
  const receiver = await listenRaw(
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`),
  );
  await expect(fetch(receiver.url, { timeoutMs: 5_000, bodyBytesMax: 0 })).rejects.toMatchObject({
    name: 'OutboundFailure',
    refused: false,
  });
  await receiver.closed;
});

test.each([
  ['nothing', ''],
  ['half a head', 'HTTP/1.1 200 OK\r\nx: '],
  ['half a body', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'],
])('who sends %s and falls silent is given up, and the connection ends', async (_what, bytes) => {
  const receiver = await listenRaw((socket) => void (bytes && socket.write(bytes)));
  await expect(fetch(receiver.url, { timeoutMs: 200, bodyBytesMax: 100 })).rejects.toThrow('no reply in time');
  await receiver.closed;
});

test('a caller that loses interest ends the call', async () => {
  const abort = new AbortController();
  const receiver = await listenRaw(() => abort.abort(new Error('never mind')));
  await expect(fetch(receiver.url, { timeoutMs: 60_000, bodyBytesMax: 0, signal: abort.signal })).rejects.toThrow(
    'never mind',
  );
  await receiver.closed;
  await expect(fetch(receiver.url, { timeoutMs: 60_000, bodyBytesMax: 0, signal: abort.signal })).rejects.toThrow(
    'never mind',
  );
});

test('a name that is never resolved is given up', async () => {
  const deaf = createGuardedFetch({ allowPrivate: false, lookup: () => new Promise(() => {}) });
  await expect(deaf('https://slow.example.com/', { timeoutMs: 100, bodyBytesMax: 0 })).rejects.toThrow(
    'no reply in time',
  );
});

test('nobody who only says so is taken for a secure receiver', async () => {
  const receiver = await listenRaw((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')),
  );
  await expect(
    fetch(receiver.url.replace('http:', 'https:'), { timeoutMs: 5_000, bodyBytesMax: 0 }),
  ).rejects.toMatchObject({ refused: false });
});

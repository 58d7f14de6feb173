import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpUpstream } from '../../../../src/gateway/network/upstream/http-upstream.ts';

test('a reply in chunks of one byte is read in turns of the event loop, and whole', async () => {
  const many = 40_000;
  const reply = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(many)}0\r\n\r\n`;
  const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end(reply)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const upstream = createHttpUpstream({ headTimeoutMs: 60_000, idleTimeoutMs: 60_000, connectionsMax: 1 });
  onTestFinished(async () => {
    await upstream.close();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const exchange = upstream.send(
    { kind: 'direct', baseUrl, headers: {} },
    { method: 'GET', path: '/', headers: {}, body: null },
    'alice',
    true,
  );
  const { read } = await exchange.head.then((head) => ({ read: () => head.read() }));
  let bytes = 0;
  let inTurn = 0;
  let most = 0;
  let isOver = false;
  const turn = () => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  for (let chunks = await read(); chunks !== null; chunks = await read()) {
    bytes += chunks.length;
    inTurn += chunks.length;
    most = Math.max(most, inTurn);
  }
  isOver = true;
  expect(bytes).toBe(many);
  expect(most).toBeLessThanOrEqual(2 * 256);
});

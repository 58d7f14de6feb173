import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createServer } from '#http';
import { checkedWith } from '../../support/checked-with.ts';
import { openSocket, readAnswer, sendRaw } from '../../support/raw-http.ts';
import { LIMITS } from '../accounts/gateway-world.ts';

checkedWith('node:http', '26.10.0', '24.21.0');

const server = createServer({ limits: LIMITS, onError: () => {} });
let origin: string;
beforeAll(async () => {
  server.post('/', async () => 'fine');
  await server.listen({ host: '127.0.0.1', port: 0 });
  origin = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

test.each(['/', '/nowhere'])(
  '%s: a client that asks for the close is answered before it has sent its body',
  async (path) => {
    const length = LIMITS.bodyBytesMax + 1;
    const socket = await openSocket(origin);
    let isOpen = true;
    const ended = once(socket, 'end').then(() => (isOpen = false));
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n{`,
    );
    const { status, headers } = await readAnswer(socket);
    expect(status).toBe(path === '/' ? 413 : 404);
    expect(headers).not.toHaveProperty('connection');
    // Node would close now, and the client could lose the answer. After another answer it would have done so.
    expect(await sendRaw(origin, 'GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n')).toMatchObject({ status: 404 });
    expect(isOpen).toBe(true);
    socket.write(Buffer.alloc(length - 1));
    await ended;
  },
);

test('of a body in chunks of one byte, the server keeps what one read brought, not 64 KiB of them', async () => {
  const kept = Promise.withResolvers<number>();
  const slow = createServer({ limits: LIMITS, onError: () => {} });
  slow.addHook('onRequest', async ({ raw }) => {
    const turn = () => new Promise((done) => void setImmediate(done));
    while (raw.readableLength <= 4_096) await turn();
    for (let turns = 0; turns < 100; turns++) await turn();
    kept.resolve(raw.readableLength);
  });
  slow.post('/', async () => 'fine');
  await slow.listen({ host: '127.0.0.1', port: 0 });
  const socket = await openSocket(`http://127.0.0.1:${(slow.server.address() as AddressInfo).port}`);
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
  socket.write('1\r\nx\r\n'.repeat(100_000));
  // A read brings at most 64 KiB, in which are 11,000 such chunks. The one before it may have ended below the bound.
  expect(await kept.promise).toBeLessThan(4_096 + 11_000);
  socket.destroy();
  await slow.close();
});

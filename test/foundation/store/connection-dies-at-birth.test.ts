import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { openDatabase } from '#store';

// A server that stops while somebody connects: it says that the connection is ready and that it ends in one breath.

/** A message of the server's side of PostgreSQL's protocol 3.0. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const AUTHENTICATED = message('R', Buffer.alloc(4));
const READY = message('Z', Buffer.from('I'));
const STOPS = message(
  'E',
  Buffer.from('SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0'),
);

test('is told to whoever asked, and ends no process', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.concat([AUTHENTICATED, READY, STOPS])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await expect(openDatabase({ url: `postgres://someone@127.0.0.1:${port}/any`, dataDir: '' })).rejects.toMatchObject({
    unavailable: true,
  });
  server.close();
  await once(server, 'close');
});

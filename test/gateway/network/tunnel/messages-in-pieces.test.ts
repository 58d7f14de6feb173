import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { SOCKET_OPTIONS } from '#network/tunnel';

// Types of ws do not have these options, so a version that names them differently would ignore them.

test('a message of more fragments than a tunnel takes ends the connection, and one of fewer arrives', async () => {
  const server = new WebSocketServer({ ...SOCKET_OPTIONS, host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const send = async (fragments: number) => {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    client.on('error', () => {});
    const [socket] = (await once(server, 'connection')) as [WebSocket];
    const outcome = Promise.race([
      once(socket, 'message').then(([message]) => String(message).length),
      new Promise<string>((resolve) => void socket.once('error', (error) => resolve(error.message))),
    ]);
    if (client.readyState !== client.OPEN) await once(client, 'open');
    for (let at = 1; at <= fragments; at += 1) client.send('x', { fin: at === fragments });
    const found = await outcome;
    client.terminate();
    return found;
  };
  expect(await send(SOCKET_OPTIONS.maxFragments)).toBe(SOCKET_OPTIONS.maxFragments);
  expect(await send(SOCKET_OPTIONS.maxFragments + 1)).toBe('Too many message fragments');
  server.close();
});

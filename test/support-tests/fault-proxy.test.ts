import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';

let echo: Server;
let proxy: FaultProxy;
const open: Socket[] = [];
beforeEach(async () => {
  // Answers each byte, and `bye` when the client has finished.
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => socket.write(bytes));
    socket.on('end', () => socket.end('bye'));
  });
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  proxy = await startFaultProxy({ port: (echo.address() as AddressInfo).port });
});
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await proxy.stop();
  echo.close();
});

/** A client, the bytes that it has received, and how it ended. */
async function client(): Promise<{
  socket: Socket;
  text: () => string;
  received: (length: number) => Promise<string>;
  closed: Promise<string>;
}> {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  open.push(socket);
  let text = '';
  let failure = 'closed';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString()));
  socket.on('error', (error: NodeJS.ErrnoException) => (failure = error.code ?? ''));
  socket.on('end', () => socket.end());
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(failure)));
  await once(socket, 'connect');
  return {
    socket,
    text: () => text,
    async received(length) {
      while (text.length < length) await once(socket, 'data');
      return text;
    },
    closed,
  };
}

it('passes everything on, and ends in order', async () => {
  const { socket, received, closed, text } = await client();
  socket.write('hello');
  expect(await received(5)).toBe('hello');
  socket.end();
  expect(await closed).toBe('closed');
  expect(text()).toBe('hellobye');
  await expect.poll(() => proxy.connections).toBe(0);
});

it('delays', async () => {
  proxy.up.latencyMs = 60;
  const { socket, received } = await client();
  const begun = performance.now();
  socket.write('hello');
  await received(5);
  expect(performance.now() - begun).toBeGreaterThan(55);
});

it.each(['up', 'down'] as const)('holds back in a black hole (%s) and delivers once healed', async (direction) => {
  const { socket, received, text } = await client();
  proxy[direction].blackhole = true;
  socket.write('hello');
  const other = await client();
  if (direction === 'down') await expect.poll(() => proxy.delivered.up).toBe(5);
  expect(text() + other.text()).toBe('');
  proxy.heal();
  expect(await received(5)).toBe('hello');
});

it.each(['up', 'down'] as const)('cuts after exactly so many bytes (%s)', async (direction) => {
  proxy[direction].cutAfterBytes = 3;
  const { socket, closed, text } = await client();
  socket.write('hello');
  expect(await closed).toBe('closed');
  expect(proxy.delivered[direction]).toBe(3);
  if (direction === 'down') expect(text()).toBe('hel');
});

it('dribbles byte by byte', async () => {
  proxy.down.dribble = true;
  const { socket, received } = await client();
  const sizes: number[] = [];
  socket.on('data', (bytes: Buffer) => sizes.push(bytes.length));
  socket.write('x'.repeat(200));
  expect(await received(200)).toBe('x'.repeat(200));
  expect(sizes.length).toBeGreaterThan(20);
});

it('resets, refuses, and takes connections again', async () => {
  const { socket, received, closed } = await client();
  socket.write('hello');
  await received(5);
  proxy.reset();
  expect(await closed).toBe('ECONNRESET');
  proxy.refuse = true;
  expect(['closed', 'ECONNRESET']).toContain(await (await client()).closed);
  proxy.heal();
  const again = await client();
  again.socket.write('hi');
  expect(await again.received(2)).toBe('hi');
});

it('half-closes: the server hears the end and still answers', async () => {
  const { socket, received, closed, text } = await client();
  socket.write('hello');
  await received(5);
  proxy.halfClose('up');
  expect(await closed).toBe('closed');
  expect(text()).toBe('hellobye');
});

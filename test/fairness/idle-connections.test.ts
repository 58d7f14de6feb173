import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { readAnswer } from '../support/raw-http.ts';
import { startSpine, type Spine } from '../support/spine.ts';

// Sixteen connections. Clients of other networks come from other addresses of this machine.

let spine: Spine;
beforeAll(async () => {
  spine = await startSpine({ toml: '[server]\ntrusted_proxies = ["127.0.0.9"]\n[limits]\nconnections_max = 16\n' });
});
afterAll(() => spine.stop());

const open = new Set<Socket>();
afterEach(async () => {
  const closed = [...open].filter((socket) => !socket.closed).map((socket) => once(socket, 'close'));
  for (const socket of open) socket.destroy();
  await Promise.all(closed);
  open.clear();
  expect(await spine.faults()).toEqual([]);
});

async function connectFrom(address: string): Promise<Socket> {
  const { hostname, port } = new URL(spine.origin);
  const socket = connect({ host: hostname, port: Number(port), localAddress: address });
  open.add(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const GET = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';

/** The status of a request on a new connection, which stays open. */
async function statusFrom(address: string): Promise<number> {
  const socket = await connectFrom(address);
  const answer = readAnswer(socket);
  socket.write(GET);
  return (await answer).status;
}

it('a network that opens all connections that it gets leaves some to the next one, and that to another', async () => {
  const greedy: number[] = [];
  for (let n = 0; n < 10; n++) greedy.push(await statusFrom('127.0.0.2'));
  expect(greedy).toEqual([...Array(8).fill(200), 429, 429]);
  const second: number[] = [];
  for (let n = 0; n < 5; n++) second.push(await statusFrom('127.0.0.3'));
  expect(second).toEqual([...Array(4).fill(200), 429]);
  expect(await statusFrom('127.0.0.4')).toBe(200);
});

it('a connection beyond the share is told why, and one that is closed makes room', async () => {
  for (let n = 0; n < 8; n++) expect(await statusFrom('127.0.0.2')).toBe(200);
  const refused = await connectFrom('127.0.0.2');
  const { status, headers, body } = await readAnswer(refused);
  expect([status, headers['retry-after'], headers['connection']]).toEqual([429, '1', 'close']);
  expect(JSON.parse(body)).toMatchObject({
    error: { type: 'rate_limit_exceeded', message: expect.stringContaining('limits.connections_max') as string },
  });
  const [first] = open;
  first!.destroy();
  await expect.poll(() => statusFrom('127.0.0.2')).toBe(200);
});

it('a proxy that is trusted stands for many clients', async () => {
  for (let n = 0; n < 14; n++) expect(await statusFrom('127.0.0.9')).toBe(200);
});

import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client, type QueryConfig } from 'pg';
import { checkedWith } from '../../support/checked-with.ts';

checkedWith('pg', '8.23.1');

/** A message of the server's side of PostgreSQL's protocol 3.0. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
const AUTHENTICATED = message('R', Buffer.alloc(4));
const READY = message('Z', Buffer.from('I'));

/** A server that accepts a connection and then answers nothing. */
let server: Server;
let arrived = Buffer.alloc(0);
let accepted: Socket;
let isSilent = false;
beforeAll(async () => {
  server = createServer((socket) => {
    accepted = socket;
    isSilent = false;
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      if (isSilent) arrived = Buffer.concat([arrived, chunk]);
      else socket.write(Buffer.concat([AUTHENTICATED, READY]));
      isSilent = true;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

async function connected(): Promise<Client> {
  const { port } = server.address() as AddressInfo;
  const client = new Client({ host: '127.0.0.1', port, user: 'someone', ssl: false, pipeline: true });
  client.on('error', () => {});
  await client.connect();
  arrived = Buffer.alloc(0);
  return client;
}

test('a client writes to the stream of its connection, which can be held back and cut', async () => {
  const client = await connected();
  const { stream } = client.connection;
  const closed = once(accepted, 'close');
  stream.cork();
  const answers = ['one', 'two'].map((name) => client.query({ name, text: `SELECT '${name}'` }));
  // pg corks and uncorks for each statement, and begins the next one in a later turn.
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => void setImmediate(resolve));
  expect(arrived.byteLength).toBe(0);
  expect(stream.writableLength).toBeGreaterThan(0);
  stream.uncork();
  await expect.poll(() => arrived.toString('latin1')).toContain(`SELECT 'two'`);
  expect(arrived.toString('latin1')).toContain(`SELECT 'one'`);
  stream.destroy();
  for (const answer of answers) await expect(answer).rejects.toThrow('terminated');
  await closed;
});

test('a query has a limit of its own', async () => {
  const client = await connected();
  await expect(client.query({ text: 'SELECT 1', query_timeout: 20 } as QueryConfig)).rejects.toThrow('timeout');
  client.connection.stream.destroy();
});

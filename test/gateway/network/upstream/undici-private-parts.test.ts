import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Agent, Client, type Pool } from 'undici';
import {
  INTERIM_REFUSED,
  INTERIM_REPLIES_MAX,
  loadAgent,
  loadPool,
  loadRequest,
  skipInterimReplies,
} from '#wire/undici';
import { checkedWith } from '../../../support/checked-with.ts';

checkedWith('undici', '8.12.4');

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const REPLY = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

let server: Server;
let origin: string;
let before = '';
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', () => socket.write(before + REPLY));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

test('the single files have the classes of the index', () => {
  const { Pool: OfIndex, Agent: AgentOfIndex } = createRequire(import.meta.url)('undici') as {
    readonly Pool: typeof Pool;
    readonly Agent: typeof Agent;
  };
  expect(loadPool()).toBe(OfIndex);
  expect(loadAgent()).toBe(AgentOfIndex);
  expect(loadRequest()).toHaveLength(2);
});

test.each([
  ['a pool', () => new (loadPool())(origin, { allowH2: false })],
  ['an agent', () => new (loadAgent())({ allowH2: false })],
  ['a client', () => new Client(origin, { allowH2: false })],
])('the parser of a connection is replaced: %s', async (_name, create) => {
  const dispatcher = skipInterimReplies<Agent | Client | Pool>(create());
  const send = async () => {
    const { statusCode, body } = await dispatcher.request({ origin, path: '/', method: 'GET' });
    return [statusCode, await body.text()];
  };
  before = CONTINUE.repeat(INTERIM_REPLIES_MAX);
  // The second reply comes over the same connection, where the count begins again.
  expect(await send()).toEqual([200, 'ok']);
  expect(await send()).toEqual([200, 'ok']);
  before = CONTINUE.repeat(INTERIM_REPLIES_MAX + 1);
  await expect(send()).rejects.toThrow(INTERIM_REFUSED);
  await dispatcher.destroy();
});

test('undici itself closes the connection at a 100, so the parser is still replaced for a reason', async () => {
  const client = new Client(origin, { allowH2: false });
  before = CONTINUE;
  await expect(client.request({ path: '/', method: 'GET' })).rejects.toThrow(INTERIM_REFUSED);
  await client.destroy();
});

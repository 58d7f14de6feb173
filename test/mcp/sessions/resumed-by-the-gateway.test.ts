import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { connect, textOf } from './sdk-client.ts';
import { startSdkServer } from './sdk-server.ts';
import { events, startScripted, type Asked } from './scripted-server.ts';
import { messagesOf, open, post, PRICE, startWorld } from './session-world.ts';

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };
const note = (n: number) =>
  `id: ${n}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}\n\n`;
const RESULT = 'id: last\ndata: {"jsonrpc":"2.0","id":7,"result":{"content":[],"whole":true}}\n\n';
const RETRY = 'id: 0\nretry: 10\ndata: \n\n';

test('a server of the SDK that closes its stream in the middle of a call answers all the same, and is paid once', async () => {
  const server = await startSdkServer({ resumable: true });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const { client, transport } = await connect(gateway.url, 'alice');
  const result = client.callTool({ name: 'breaks-off', arguments: {} });
  await server.waiting(1);
  const [id] = server.sessions();
  const gets = () => server.requests.filter((line) => line === `GET ${id} `).length;
  while (gets() < 2) await new Promise((resolve) => setImmediate(resolve));
  server.finish();
  expect(await textOf(result)).toBe('in one piece');
  expect(transport.sessionId).not.toBe(id);
  expect(await world.charged('alice')).toBe(PRICE);
  expect(gateway.endings).toEqual(['breaks-off: complete, 1000']);
  expect(await world.faults()).toEqual([]);
});

type Act = (response: ServerResponse) => void;

/** `begin` begins the answer to the call, each of `gets` goes on with it, in turn. */
async function scripted(begin: Act, gets: readonly Act[], callTimeoutMs = 30_000) {
  const resumed: Asked[] = [];
  const server = await startScripted({
    answer(asked, response) {
      if (asked.message.method === 'tools/call') return begin(response);
      if (asked.http !== 'GET') return undefined;
      resumed.push(asked);
      return gets[Math.min(resumed.length, gets.length) - 1]!(response);
    },
  });
  const world = await startWorld({ url: server.url, callTimeoutMs });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  return { server, world, gateway, resumed, ask: async () => messagesOf(await post(gateway.url, 'alice', id, CALL)) };
}

test('a stream that ends, and one whose connection breaks, are gone on with from their last event', async () => {
  const { world, resumed, ask } = await scripted(
    (response) => events(response, RETRY, note(1)).end(),
    [
      (response) => events(response, note(2)).write(': more', () => response.destroy()),
      (response) =>
        response
          .writeHead(409, { 'content-type': 'application/json' })
          .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Conflict"}}'),
      (response) => events(response).end(note(3)),
      (response) => events(response).end(RESULT),
    ],
  );
  const messages = await ask();
  expect(messages.map((message) => (message['params'] as { data: number } | undefined)?.data ?? 'result')).toEqual([
    1,
    2,
    3,
    'result',
  ]);
  expect(resumed.map(({ headers }) => headers['last-event-id'])).toEqual(['1', '2', '2', '3']);
  for (const { session, headers } of resumed)
    expect([session, headers.accept]).toEqual(['upstream-2', 'text/event-stream']);
  expect(await world.charged('alice')).toBe(PRICE);
  expect(await world.faults()).toEqual([]);
});

test('tries end after some that fail, and the call is free', async () => {
  const { world, gateway, resumed, ask } = await scripted(
    (response) => events(response, RETRY).end(),
    [(response) => response.writeHead(500).end()],
  );
  expect(await ask()).toMatchObject([{ id: 7, error: { message: expect.stringContaining('its stream broke') } }]);
  expect(resumed).toHaveLength(3);
  expect(await world.charged('alice')).toBe(0n);
  expect(gateway.endings).toEqual(['t: released, 0']);
  expect(await world.faults()).toEqual([]);
});

test('a stream without ids is not asked for again', async () => {
  const { world, resumed, ask } = await scripted(
    (response) => events(response, note(1).replace('id: 1\n', '')).end(),
    [(response) => response.writeHead(500).end()],
  );
  expect((await ask()).at(-1)).toMatchObject({
    id: 7,
    error: { message: expect.stringContaining('without a response') },
  });
  expect(resumed).toHaveLength(0);
  expect(await world.charged('alice')).toBe(0n);
  expect(await world.faults()).toEqual([]);
});

test('a call whose time is over while the gateway waits to go on is free', async () => {
  const { world, gateway, resumed, ask } = await scripted(
    (response) => events(response, 'id: 0\nretry: 30000\ndata: \n\n').end(),
    [(response) => events(response).end(RESULT)],
    300,
  );
  expect(await ask()).toMatchObject([{ id: 7, error: { message: expect.stringContaining('did not finish in time') } }]);
  expect(resumed).toHaveLength(0);
  expect(gateway.endings).toEqual(['t: released, 0']);
  expect(await world.faults()).toEqual([]);
});

import { expect, test } from 'vitest';
import { connect, textOf } from './sdk-client.ts';
import { startSdkServer } from './sdk-server.ts';
import { open, post, PRICE, startWorld } from './session-world.ts';

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

test('a session goes on at another gateway, and after a restart', async () => {
  const server = await startSdkServer();
  const world = await startWorld({ url: server.url });
  const first = await world.gateway();
  const { client, transport } = await connect(first.url, 'alice');
  expect(await textOf(client.callTool({ name: 'echo', arguments: { text: 'one' } }))).toBe('one');
  const id = transport.sessionId!;
  await client.close();
  await first.stop();
  const second = await world.gateway();
  expect((await post(second.url, 'bob', id, LIST)).status).toBe(404);
  // What is another's is not even taken into memory.
  expect(second.sessions.count()).toBe(0);
  const call = { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'echo', arguments: { text: 'two' } } };
  expect(await (await post(second.url, 'alice', id, call)).text()).toContain('two');
  expect((await post(second.url, 'bob', id, call)).status).toBe(404);
  // Each gateway asked who is there; the client did not open a second session.
  expect(server.requests.filter((line) => line.endsWith(' initialize'))).toHaveLength(3);
  expect(await world.charged('alice')).toBe(2n * PRICE);
  expect(await world.faults()).toEqual([]);
});

test('one that was ended at another gateway is over here, at the latest when the store is asked again', async () => {
  const server = await startSdkServer();
  const world = await startWorld({ url: server.url });
  const [here, there] = [await world.gateway(), await world.gateway()];
  const id = await open(here.url, 'alice');
  expect((await post(there.url, 'alice', id, LIST)).status).toBe(200);
  const ending = { method: 'DELETE', headers: { authorization: 'Bearer alice', 'mcp-session-id': id } };
  expect((await fetch(there.url, ending)).status).toBe(204);
  expect(server.sessions()).toHaveLength(0);
  // Its server does not know it any more, so that the store is asked at once.
  expect((await post(here.url, 'alice', id, LIST)).status).toBe(404);
  expect(here.sessions.count()).toBe(0);
});

test('an end that the server does not tell is noticed within a minute of use', async () => {
  const server = await startSdkServer();
  const world = await startWorld({ url: server.url });
  const [here, there] = [await world.gateway(), await world.gateway()];
  const id = await open(here.url, 'alice');
  await there.sessions.end(id, { account: 'tollgate:local:alice', within: null }, 'acme/tools');
  world.clock.ahead += 60_001;
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  expect((await post(here.url, 'alice', id, ping)).status).toBe(404);
});

import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events, type ScriptedServer, startScripted } from './scripted-server.ts';
import { open, post, PRICE, startWorld } from './session-world.ts';

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };
const RESULT = 'data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n';

/** A server that breaks off the streams of a session that ends, as servers of the SDK do. */
async function startServer(): Promise<{ server: ScriptedServer; called: Promise<ServerResponse> }> {
  const called = Promise.withResolvers<ServerResponse>();
  const server = await startScripted({
    answer({ message }, response) {
      if (message.method !== 'tools/call') return;
      called.resolve(events(response, 'id: 1\ndata:\n\n'));
      server.open.delete = (id) => {
        response.destroy();
        return Set.prototype.delete.call(server.open, id);
      };
    },
  });
  return { server, called: called.promise };
}

const end = (url: string, id: string) =>
  fetch(url, { method: 'DELETE', headers: { authorization: 'Bearer alice', 'mcp-session-id': id } });

test('a call whose session its client ends is read on and paid, and only then the session ends at the server', async () => {
  const { server, called } = await startServer();
  const world = await startWorld({ url: server.url, drainMs: 60_000 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  const response = await called;
  expect((await end(gateway.url, id)).status).toBe(204);
  expect((await post(gateway.url, 'alice', id, { ...CALL, id: 8 })).status).toBe(404);
  expect([server.open.size, gateway.endings]).toEqual([1, []]);
  response.end(RESULT);
  expect(await (await answer).text()).toContain('"result"');
  while (server.open.size > 0) await new Promise((resolve) => setImmediate(resolve));
  expect([gateway.endings, gateway.failures()]).toEqual([['t: complete, 1000'], 0]);
  expect(await world.charged('alice')).toBe(PRICE);
  expect(await world.faults()).toEqual([]);
});

test('a call that does not end in time after its session has ended is free, and its provider has not failed', async () => {
  const { server, called } = await startServer();
  const world = await startWorld({ url: server.url, drainMs: 50 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const answer = post(gateway.url, 'alice', id, CALL);
  await called;
  expect((await end(gateway.url, id)).status).toBe(204);
  await (await answer).text();
  while (server.open.size > 0) await new Promise((resolve) => setImmediate(resolve));
  expect([gateway.endings.length, gateway.failures()]).toEqual([1, 0]);
  expect(await world.charged('alice')).toBe(0n);
  expect(await world.faults()).toEqual([]);
});

test('a session that ends at another gateway ends its call here, which is no failure of the provider either', async () => {
  const { server, called } = await startServer();
  const world = await startWorld({ url: server.url, drainMs: 60_000 });
  const [here, other] = [await world.gateway(), await world.gateway()];
  const id = await open(here.url, 'alice');
  const answer = post(here.url, 'alice', id, CALL);
  await called;
  expect((await end(other.url, id)).status).toBe(204);
  await (await answer).text();
  expect([here.endings, here.failures(), other.failures()]).toEqual([['t: session ended, 0'], 0, 0]);
  expect(await world.faults()).toEqual([]);
});

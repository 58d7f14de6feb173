import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events, json, startScripted } from './scripted-server.ts';
import { open, startWorld } from './session-world.ts';

const NOTE = 'event: message\nid: 5\ndata: {"jsonrpc":"2.0" ,"method":"notifications/tools/list_changed"}\n\n';
const ASKS = 'data:{"jsonrpc":"2.0","id":"s1","method":"roots/list"}\r\n\r\n';
const PRIMING = 'id: 4\nretry: 50\ndata: \n\n';

async function world(
  get: (response: ServerResponse, lastEventId: string | undefined) => unknown,
  options: { listensMs?: number } = {},
) {
  const server = await startScripted({
    answer: ({ http, headers }, response) =>
      http === 'GET' ? get(response, headers['last-event-id'] as string | undefined) : undefined,
  });
  const started = await startWorld({ url: server.url, ...options });
  const gateway = await started.gateway();
  const id = await open(gateway.url, 'alice');
  const listen = (more: Record<string, string> = {}) =>
    fetch(gateway.url, {
      headers: { authorization: 'Bearer alice', 'mcp-session-id': id, accept: 'text/event-stream', ...more },
    });
  const isOver = async () => {
    while (gateway.listens.count > 0 || gateway.inFlight() > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  return { server, world: started, gateway, id, listen, isOver };
}

test('what the server sends comes as it was written, and responses do not', async () => {
  const { listen, isOver, gateway } = await world((response) =>
    events(response, PRIMING, NOTE.slice(0, 20)).end(
      `${NOTE.slice(20)}${ASKS}data: {"jsonrpc":"2.0","id":1,"result":{}}\n\ndata: no JSON\n\n`,
    ),
  );
  const reply = await listen();
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  expect(await reply.text()).toBe(`: listening\n\n${PRIMING}${NOTE}${ASKS}`);
  await isOver();
  expect(gateway.errors).toEqual([]);
});

test('the head comes before the first event', async () => {
  const { listen, gateway, isOver } = await world((response) => events(response).flushHeaders());
  const reply = await listen();
  const reader = reply.body!.getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(': listening\n\n');
  await reader.cancel();
  await isOver();
  expect(gateway.errors).toEqual([]);
});

test('Last-Event-ID reaches the server', async () => {
  const { listen } = await world((response, last) =>
    events(response).end(`data: {"jsonrpc":"2.0","method":"notifications/x","params":{"last":"${last}"}}\n\n`),
  );
  expect(await (await listen({ 'last-event-id': 'a b/4' })).text()).toContain('"last":"a b/4"');
  expect(await (await listen()).text()).toContain('"last":"undefined"');
});

test('a server without such a stream answers 405, and so does one that has nothing at the address', async () => {
  for (const status of [405, 404, 400]) {
    const { listen, server } = await world((response) => response.writeHead(status).end('no'));
    expect((await listen()).status).toBe(405);
    expect(server.open.size).toBe(1);
  }
});

test('the refusal of a second stream is passed on', async () => {
  const { listen } = await world((response) =>
    json(response, { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'Conflict: one only' } }, 409),
  );
  const reply = await listen();
  expect([reply.status, await reply.json()]).toMatchObject([409, { error: { message: 'Conflict: one only' } }]);
});

test('a stream of a session that its server lost is opened in a new one', async () => {
  const { listen, server } = await world((response) => events(response).end(NOTE));
  server.open.clear();
  expect(await (await listen()).text()).toContain(NOTE);
  expect([...server.open]).toEqual(['upstream-3']);
});

test('a stream ends with its session, with the gateway, and after its time', async () => {
  const ended = await world((response) => events(response).flushHeaders());
  const first = await ended.listen();
  await fetch(ended.gateway.url, {
    method: 'DELETE',
    headers: { authorization: 'Bearer alice', 'mcp-session-id': ended.id },
  });
  expect(await first.text()).toBe(': listening\n\n');
  await ended.isOver();

  const drained = await world((response) => events(response).flushHeaders());
  const second = await drained.listen();
  drained.gateway.listens.drain();
  expect(await second.text()).toBe(': listening\n\n');
  await drained.isOver();

  const aged = await world((response) => events(response).flushHeaders(), { listensMs: 1_000 });
  expect(await (await aged.listen()).text()).toBe(': listening\n\n');
  await aged.isOver();
  for (const { gateway } of [ended, drained, aged]) expect(gateway.errors).toEqual([]);
});

test('a stream whose server breaks off ends, so that its client comes back', async () => {
  const { listen, isOver, gateway } = await world((response) =>
    events(response, NOTE).write(': more', () => response.destroy()),
  );
  expect(await (await listen()).text()).toBe(`: listening\n\n${NOTE}`);
  await isOver();
  expect(gateway.errors).toEqual([]);
});

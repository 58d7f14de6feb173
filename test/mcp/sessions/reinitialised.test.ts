import { expect, test } from 'vitest';
import { json, startScripted, type Script } from './scripted-server.ts';
import { INITIALIZE, messagesOf, open, post, PRICE, startWorld } from './session-world.ts';

const CALL = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 't', arguments: {} } });

async function world(script: Script = {}) {
  const server = await startScripted({
    answer: ({ message, session }, response) =>
      message.method === 'tools/call'
        ? json(response, { jsonrpc: '2.0', id: message.id, result: { content: [], of: session } })
        : undefined,
    ...script,
  });
  const started = await startWorld({ url: server.url });
  const gateway = await started.gateway();
  const id = await open(gateway.url, 'alice');
  const call = async (n: number, url = gateway.url) => {
    const reply = await post(url, 'alice', id, CALL(n));
    const [message] = await messagesOf(reply);
    return { status: reply.status, of: (message as { result?: { of: string } }).result?.of, message };
  };
  return { server, world: started, gateway, call };
}

test('a session that its server lost is opened anew, unseen by the client, and the request is repeated once', async () => {
  const { server, world: money, call } = await world();
  expect((await call(1)).of).toBe('upstream-2');
  server.open.clear();
  const before = server.asked.length;
  expect((await call(2)).of).toBe('upstream-3');
  expect(server.asked.slice(before).map(({ message, session }) => [message.method, session])).toEqual([
    ['tools/call', 'upstream-2'],
    ['initialize', undefined],
    ['notifications/initialized', 'upstream-3'],
    ['tools/call', 'upstream-3'],
  ]);
  const replayed = server.asked[before + 1]!.message;
  expect(replayed.params).toEqual(INITIALIZE.params);
  expect(replayed.id).toMatch(/^tollgate:/);
  expect((await call(3)).of).toBe('upstream-3');
  expect(await money.charged('alice')).toBe(3n * PRICE);
  expect(await money.faults()).toEqual([]);
});

test('many requests that find out at once open one new session', async () => {
  const { server, world: money, call } = await world();
  server.open.clear();
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => call(n + 1)));
  expect(new Set(answers.map(({ of }) => of))).toEqual(new Set(['upstream-3']));
  expect(server.asked.filter(({ message }) => message.method === 'initialize')).toHaveLength(3);
  expect(await money.charged('alice')).toBe(20n * PRICE);
  expect(await money.faults()).toEqual([]);
});

test('servers that say 400 in words are understood as well', async () => {
  const { server, call } = await world({
    unknownSession: (response) =>
      json(
        response,
        { jsonrpc: '2.0', error: { code: -32_000, message: 'Bad Request: No valid session ID provided' }, id: null },
        400,
      ),
  });
  server.open.clear();
  expect((await call(1)).of).toBe('upstream-3');
});

test('a server that loses the new one too is not asked a third time', async () => {
  const {
    server,
    world: money,
    call,
  } = await world({
    answer({ message }, response) {
      if (message.method !== 'tools/call') return;
      json(response, { jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'Session not found' } }, 404);
    },
  });
  server.open.clear();
  const { message, status } = await call(1);
  expect(message).toMatchObject({ error: { code: -32_001 } });
  // 404 would end the client's session with the gateway.
  expect(status).toBe(400);
  expect(await money.charged('alice')).toBe(0n);
  expect(await money.faults()).toEqual([]);
});

test('a server that comes back with another revision ends the session', async () => {
  let revision = '2025-11-25';
  const {
    server,
    world: money,
    call,
  } = await world({
    initializeResult: () =>
      JSON.stringify({
        protocolVersion: revision,
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }),
  });
  revision = '2025-06-18';
  server.open.clear();
  expect((await call(1)).status).toBe(404);
  expect((await call(2)).status).toBe(404);
  expect(server.open.size).toBe(0);
  expect(await money.rows()).toBe(0);
});

test('a gateway that finds its session lost takes the one that another gateway opened', async () => {
  const { server, world: money, call } = await world();
  const other = await money.gateway();
  expect((await call(1, other.url)).of).toBe('upstream-2');
  server.open.delete('upstream-2');
  expect((await call(2)).of).toBe('upstream-4');
  expect((await call(3, other.url)).of).toBe('upstream-4');
  // Both gateways asked who is there, one session was opened, and once anew.
  expect(server.asked.filter(({ message }) => message.method === 'initialize')).toHaveLength(4);
});

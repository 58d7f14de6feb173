import { expect, test } from 'vitest';
import { json, startScripted, type Script } from './scripted-server.ts';
import { INITIALIZE, messagesOf, open, post, startWorld } from './session-world.ts';

const ROOTS = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };

async function world(script: Script) {
  const server = await startScripted(script);
  const started = await startWorld({ url: server.url });
  const gateway = await started.gateway();
  const opening = await post(gateway.url, 'alice', null, INITIALIZE);
  return { server, world: started, gateway, opening: await opening.text(), id: opening.headers.get('mcp-session-id')! };
}

test('what the server refuses to be told is refused, with its own words', async () => {
  const { gateway, id } = await world({
    answer: (_asked, response) =>
      json(response, { jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'not now' } }, 400),
  });
  const reply = await post(gateway.url, 'alice', id, ROOTS);
  expect([reply.status, await reply.json()]).toMatchObject([400, { error: { message: 'not now' } }]);
});

test('a server without sessions is asked without any', async () => {
  const { server, gateway, id } = await world({
    sessionId: null,
    answer: ({ message }, response) =>
      message.method === 'tools/list'
        ? json(response, { jsonrpc: '2.0', id: message.id, result: { tools: [] } })
        : undefined,
  });
  const reply = await post(gateway.url, 'alice', id, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
  expect(await reply.json()).toEqual({ jsonrpc: '2.0', id: 1, result: { tools: [] } });
  expect(server.asked.at(-1)!.session).toBeUndefined();
  expect(
    (await fetch(gateway.url, { method: 'DELETE', headers: { authorization: 'Bearer alice', 'mcp-session-id': id } }))
      .status,
  ).toBe(204);
  expect(server.asked.filter(({ http }) => http === 'DELETE')).toHaveLength(0);
});

test('ping and what no session has are answered here', async () => {
  const { server, gateway, id } = await world({});
  const before = server.asked.length;
  const ping = await post(gateway.url, 'alice', id, '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}');
  expect(await ping.text()).toBe('{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}');
  const unknown = await post(gateway.url, 'alice', id, { jsonrpc: '2.0', id: 2, method: 'tasks/list' });
  expect(await messagesOf(unknown)).toMatchObject([{ id: 2, error: { code: -32_601 } }]);
  expect(server.asked.length).toBe(before);
});

test('a server that knows no handshake has sessions that are the gateway’s alone', async () => {
  const { createServer } = await import('node:http');
  const seen: string[] = [];
  const bare = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      seen.push(text);
      const { id, method } = JSON.parse(text) as { id: number; method: string };
      const answer =
        method === 'tools/call'
          ? { result: { content: [] } }
          : { error: { code: -32_601, message: 'Method not found' } };
      json(response, { jsonrpc: '2.0', id, ...answer });
    });
  });
  await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve));
  const started = await startWorld({
    url: `http://127.0.0.1:${(bare.address() as import('node:net').AddressInfo).port}/`,
  });
  const gateway = await started.gateway();
  const opening = await post(gateway.url, 'alice', null, {
    ...INITIALIZE,
    params: { ...INITIALIZE.params, protocolVersion: '2025-03-26' },
  });
  expect(await opening.json()).toMatchObject({
    id: 0,
    result: { protocolVersion: '2025-03-26', capabilities: { tools: {} } },
  });
  const id = opening.headers.get('mcp-session-id')!;
  const before = seen.length;
  expect((await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(
    202,
  );
  expect(
    (
      await fetch(gateway.url, {
        headers: { authorization: 'Bearer alice', 'mcp-session-id': id, accept: 'text/event-stream' },
      })
    ).status,
  ).toBe(405);
  expect(await messagesOf(await post(gateway.url, 'alice', id, CALL))).toMatchObject([
    { id: 7, result: { content: [] } },
  ]);
  expect(seen.slice(before)).toEqual([JSON.stringify(CALL)]);
  bare.close();
});

test('a modern server is spoken to by the bridge, in a session that is the gateway’s alone', async () => {
  const { startMcpFixture } = await import('../../support/mcp-fixture.ts');
  const fixture = await startMcpFixture({ eras: 'modern' });
  const started = await startWorld({ url: fixture.url });
  const gateway = await started.gateway();
  const id = await open(gateway.url, 'alice');
  expect((await post(gateway.url, 'alice', id, { jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(
    202,
  );
  const reply = await post(gateway.url, 'alice', id, { ...CALL, params: { name: 'test_simple_text', arguments: {} } });
  expect(await messagesOf(reply)).toMatchObject([{ id: 7, result: { content: [{ type: 'text' }] } }]);
  await gateway.stop();
  const other = await started.gateway();
  expect((await post(other.url, 'alice', id, { jsonrpc: '2.0', id: 8, method: 'tools/list' })).status).toBe(200);
  expect(
    (await fetch(other.url, { method: 'DELETE', headers: { authorization: 'Bearer alice', 'mcp-session-id': id } }))
      .status,
  ).toBe(204);
  expect(await started.faults()).toEqual([]);
  await other.stop();
  await fixture.close();
});

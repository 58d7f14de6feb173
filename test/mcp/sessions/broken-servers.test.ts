import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { events, json, startScripted } from './scripted-server.ts';
import { INITIALIZE, messagesOf, open, post, startWorld } from './session-world.ts';

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 't', arguments: {} } };
const error = (code: number, id: number | null = 7) => ({ jsonrpc: '2.0', id, error: { code, message: 'own words' } });

const FAILED = { id: 7, error: { code: -32_017 } };
const OWN = { error: { message: 'own words' } };

test.each<[string, (response: ServerResponse) => unknown, number, object]>([
  ['JSON-RPC error with status 200', (response) => json(response, error(-32_602)), 200, OWN],
  ['JSON-RPC error with status 400', (response) => json(response, error(-32_602), 400), 400, OWN],
  ['JSON-RPC error with status 500', (response) => json(response, error(-32_603, null), 500), 500, OWN],
  ['JSON-RPC error with status 429', (response) => json(response, error(-32_000), 429), 429, OWN],
  ['refusal of the provider’s own credentials', (response) => json(response, error(-32_001), 401), 200, FAILED],
  ['page of HTML', (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), 200, FAILED],
  ['status 500 without words', (response) => response.writeHead(500).end(), 200, FAILED],
  ['status 202', (response) => response.writeHead(202).end(), 200, FAILED],
  ['response to another request', (response) => json(response, { jsonrpc: '2.0', id: 8, result: {} }), 200, FAILED],
  ['stream without a response', (response) => events(response).end(': nothing\n\n'), 200, FAILED],
  [
    'stream with a response to another request',
    (response) => events(response).end('data: {"jsonrpc":"2.0","id":"seven","result":{}}\n\n'),
    200,
    FAILED,
  ],
  ['broken connection', (response) => response.destroy(), 200, FAILED],
])('a %s costs nothing', async (_name, answer, status, message) => {
  const server = await startScripted({
    answer: (asked, response) => (asked.message.method === 'tools/call' ? answer(response) : undefined),
  });
  const world = await startWorld({ url: server.url, replyBytesMax: 50_000 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const reply = await post(gateway.url, 'alice', id, CALL);
  expect(reply.status).toBe(status);
  expect((await messagesOf(reply)).at(-1)).toMatchObject(message);
  expect(await world.charged('alice')).toBe(0n);
  expect(server.asked.filter((asked) => asked.message.method === 'tools/call')).toHaveLength(1);
  expect(gateway.inFlight()).toBe(0);
  expect(await world.faults()).toEqual([]);
});

test.each([
  ['a keep-alive with a name', 'event: ping\ndata: {}\n\n'],
  ['a keep-alive that is text', 'event: ping\nid: e1\ndata: 2026-11-23T07:00:00Z\n\n'],
  ['a notification with a text as parameters', 'data: {"jsonrpc":"2.0","method":"notifications/x","params":"x"}\n\n'],
  ['half a message', 'data: {"jsonrpc":"2.0",\n\n'],
])('an event that is %s is skipped', async (_name, event) => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.method === 'tools/call'
        ? events(response, event).end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n')
        : undefined,
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const reply = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), CALL);
  expect(await reply.json()).toMatchObject({ id: 7, result: { content: [] } });
  expect(gateway.endings).toEqual(['t: complete, 1000']);
  expect(await world.faults()).toEqual([]);
});

test('a call without a response says that an event could not be read', async () => {
  const server = await startScripted({
    answer: ({ message }, response) =>
      message.method === 'tools/call' ? events(response).end('data: {"id":7,"result":{}}\n\n') : undefined,
  });
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const reply = await post(gateway.url, 'alice', await open(gateway.url, 'alice'), CALL);
  expect(((await reply.json()) as { error: { message: string } }).error.message).toBe(
    'Provider acme failed: it ended its answer without a response, and it sent an event that is no JSON-RPC message',
  );
  expect(await world.charged('alice')).toBe(0n);
});

test.each<[string, (response: ServerResponse) => unknown]>([
  ['reply', (response) => json(response, { jsonrpc: '2.0', id: 7, result: { x: 'y'.repeat(100_000) } })],
  [
    'stream',
    (response) =>
      events(response).end(
        `${'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'.repeat(2_000)}data: {"jsonrpc":"2.0","id":7,"result":{}}\n\n`,
      ),
  ],
])('a %s that is too large is charged, as the tool has run, and its client is told so', async (_name, answer) => {
  const server = await startScripted({
    answer: (asked, response) => (asked.message.method === 'tools/call' ? answer(response) : undefined),
  });
  const world = await startWorld({ url: server.url, replyBytesMax: 50_000 });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const reply = await post(gateway.url, 'alice', id, CALL);
  expect((await messagesOf(reply)).at(-1)).toMatchObject({
    id: 7,
    result: { isError: true, content: [{ text: expect.stringContaining('larger than 50000 bytes') as string }] },
  });
  expect(await world.charged('alice')).toBeGreaterThan(0n);
  expect(await world.faults()).toEqual([]);
});

test('a client that takes no events gets the response alone, and the server hears that it cannot ask', async () => {
  const told = Promise.withResolvers<string>();
  const server = await startScripted({
    answer({ message, text }, response) {
      if (message.method === 'tools/call')
        held.resolve(events(response, 'data: {"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage"}\n\n'));
      else if (message.id === 's1') told.resolve(text);
    },
  });
  const held = Promise.withResolvers<ServerResponse>();
  const world = await startWorld({ url: server.url });
  const gateway = await world.gateway();
  const id = await open(gateway.url, 'alice');
  const reply = post(gateway.url, 'alice', id, CALL, { accept: 'application/json' });
  const response = await held.promise;
  expect(JSON.parse(await told.promise)).toMatchObject({ id: 's1', error: { code: -32_601 } });
  response.end('data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n');
  expect((await reply).headers.get('content-type')).toBe('application/json');
  expect(await (await reply).json()).toMatchObject({ id: 7, result: { content: [] } });
  expect(await world.faults()).toEqual([]);
});

test.each([
  ['refuses it', (response: ServerResponse, id: unknown) => json(response, { ...error(-32_602), id }, 400), 400],
  [
    'answers without a revision',
    (response: ServerResponse, id: unknown) => json(response, { jsonrpc: '2.0', id, result: {} }),
    502,
  ],
])('initialize at a server that %s opens nothing', async (_name, answer, status) => {
  let probed = false;
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk) => (text += chunk));
    request.on('end', () => {
      const { id, method } = JSON.parse(text || '{}') as { id?: unknown; method?: string };
      if (method === 'initialize' && !probed) {
        probed = true;
        const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } };
        json(response, { jsonrpc: '2.0', id, result });
      } else if (method === 'initialize') answer(response, id);
      else json(response, { ...error(-32_601), id }, 404);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const world = await startWorld({
    url: `http://127.0.0.1:${(server.address() as import('node:net').AddressInfo).port}/`,
  });
  const gateway = await world.gateway();
  const reply = await post(gateway.url, 'alice', null, INITIALIZE);
  expect([reply.status, reply.headers.get('mcp-session-id')]).toEqual([status, null]);
  expect(await world.rows()).toBe(0);
  server.close();
});

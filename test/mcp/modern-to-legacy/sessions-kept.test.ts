import { once } from 'node:events';
import { expect, test } from 'vitest';
import { META } from '../../../src/mcp/wire/revisions.ts';
import { OTHER_ACCOUNT, startBridge } from './bridge.ts';
import { startRawServer } from './raw-legacy-server.ts';
import { startLegacyServer, textOf, type LegacyServer } from './legacy-server.ts';

const call = { name: 'echo', arguments: { text: 'hello' } };
/** Sessions that calls ran in, one per call. */
const usedBy = ({ seen }: LegacyServer) =>
  seen.filter(({ message }) => message.method === 'tools/call').map(({ session }) => session);
const opened = ({ seen }: LegacyServer) => seen.filter(({ message }) => message.method === 'initialize').slice(1);

test('calls of one account that declare the same share a session, and others have their own', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  await Promise.all([1, 2, 3].map(() => bridge.post('tools/call', call)));
  expect(new Set(usedBy(server)).size).toBe(1);
  await bridge.post('tools/call', call, { account: OTHER_ACCOUNT });
  await bridge.post('tools/call', call, { capabilities: { elicitation: {} } });
  await bridge.post('tools/call', call);
  const used = usedBy(server);
  expect(new Set(used).size).toBe(3);
  expect(used[5]).toBe(used[0]);
  expect(bridge.sessions.size).toBe(3);
  expect(await bridge.faults()).toEqual([]);
});

test('a server hears who the client is and what it can do', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  const clientInfo = { name: 'agent', version: '3' };
  await bridge.post('tools/call', call, {
    capabilities: {
      elicitation: { url: {} },
      roots: { listChanged: true },
      tasks: {},
      extensions: { 'io.modelcontextprotocol/tasks': {}, 'a/b': {} },
    },
    meta: { [META.clientInfo]: clientInfo },
  });
  await bridge.post('tools/list');
  const [first, second] = opened(server);
  expect(first?.message.params).toEqual({
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: { url: {} }, roots: {}, extensions: { 'a/b': {} } },
    clientInfo,
  });
  expect(second?.message.params).toMatchObject({ capabilities: {}, clientInfo: { name: 'tollgate' } });
  const credentials = server.seen.map(({ headers }) => [headers['authorization'], headers['x-account']]);
  expect(new Set(credentials.map(String))).toEqual(new Set(['Bearer provider-secret,']));
});

test('a session that nobody uses is deleted', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { sessions: { idleMs: 100 } });
  const deleted = new Promise<string>((resolve) =>
    server.events.on('deleted', (id: string) => usedBy(server).includes(id) && resolve(id)),
  );
  await bridge.post('tools/call', call, { capabilities: { elicitation: {} } });
  expect(await deleted).toBe(usedBy(server)[0]);
  expect(bridge.sessions.size).toBe(0);
  expect(server.sessions.size).toBe(0);
});

test('a session that a call is held in is not deleted', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { sessions: { idleMs: 50 } });
  const capabilities = { elicitation: {} };
  const { message } = await bridge.post('tools/call', { name: 'ask' }, { capabilities });
  // Another account's is deleted in the meantime.
  const deleted = once(server.events, 'deleted');
  await bridge.post('tools/call', call, { account: OTHER_ACCOUNT });
  await deleted;
  const [key] = Object.keys(message.result!['inputRequests'] as object);
  const round = {
    inputResponses: { [key!]: { action: 'accept', content: { name: 'Ann' } } },
    requestState: message.result!['requestState'],
  };
  expect(textOf((await bridge.post('tools/call', { name: 'ask', ...round }, { capabilities })).message.result)).toBe(
    'accept Ann',
  );
  expect(await bridge.faults()).toEqual([]);
});

test('a session that its server forgot is opened anew, once', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  await bridge.post('tools/call', call);
  server.forget();
  expect(textOf((await bridge.post('tools/call', call)).message.result)).toBe('hello');
  expect(opened(server)).toHaveLength(2);
  expect(bridge.sessions.size).toBe(1);
  expect(bridge.endings).toEqual(['echo: complete, 1000', 'echo: complete, 1000']);
  expect(await bridge.faults()).toEqual([]);
});

test('a server that says with 400 that it knows no such session has lost it', async () => {
  let calls = 0;
  const server = await startRawServer(({ message }, response) => {
    if (++calls > 1) return `{"jsonrpc":"2.0","id":${message.id},"result":{"content":[]}}`;
    const error =
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}';
    response.writeHead(400, { 'content-type': 'application/json' }).end(error);
    return null;
  });
  const bridge = await startBridge(server.url);
  expect((await bridge.post('tools/call', call)).message.result).toEqual({ content: [], resultType: 'complete' });
  expect(server.seen.map(({ message }) => message.method).slice(-6)).toEqual([
    'initialize',
    'notifications/initialized',
    'tools/call',
    'initialize',
    'notifications/initialized',
    'tools/call',
  ]);
  expect(await bridge.faults()).toEqual([]);
});

test('a server that knows no session at all is not asked for ever', async () => {
  const server = await startRawServer((_request, response) => {
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
    return null;
  });
  const bridge = await startBridge(server.url);
  const reply = await bridge.post('tools/call', call);
  expect(reply.status).toBe(404);
  expect(reply.message.error?.code).toBe(-32_001);
  expect(server.seen.filter(({ message }) => message.method === 'tools/call')).toHaveLength(2);
  expect(bridge.endings).toEqual(['echo: error -32001, 0']);
  expect(await bridge.faults()).toEqual([]);
});

test('an account has so many sessions, and the one that was used longest ago makes room', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { sessions: { perAccountMax: 2 } });
  const use = (name: string) => bridge.post('tools/call', call, { capabilities: { experimental: { [name]: {} } } });
  await use('a');
  await use('b');
  await use('a');
  const [a, b] = usedBy(server);
  const deleted = once(server.events, 'deleted');
  await use('c');
  expect(await deleted).toEqual([b]);
  expect(server.sessions.has(a!)).toBe(true);
  expect(bridge.sessions.size).toBe(2);
  expect(await bridge.faults()).toEqual([]);
});

test('an account has as many sessions as it leaves free, and ends its own', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { sessions: { max: 4 } });
  const use = (name: string, more = {}) =>
    bridge.post('tools/call', call, { capabilities: { experimental: { [name]: {} } }, ...more });
  await use('other', { account: OTHER_ACCOUNT });
  await use('a');
  await use('b');
  const [other, a] = usedBy(server);
  const deleted = once(server.events, 'deleted');
  await use('c');
  expect(await deleted).toEqual([a]);
  expect(server.sessions.has(other!)).toBe(true);
  expect(await bridge.faults()).toEqual([]);
});

test('an account whose sessions are all in use waits', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url, { sessions: { perAccountMax: 1 } });
  await bridge.post('tools/call', { name: 'ask' }, { capabilities: { elicitation: {} } });
  const refused = await bridge.post('tools/call', call);
  expect(refused.status).toBe(429);
  expect((await bridge.post('tools/call', call, { account: OTHER_ACCOUNT })).status).toBe(200);
  expect(await bridge.faults()).toEqual([]);
});

test('a gateway that closes leaves no session at its servers', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  await bridge.post('tools/call', call);
  await bridge.post('tools/call', call, { account: OTHER_ACCOUNT });
  expect(server.sessions.size).toBe(2);
  await bridge.sessions.close();
  expect(server.sessions.size).toBe(0);
  expect(bridge.sessions.size).toBe(0);
  expect((await bridge.post('tools/call', call)).status).toBe(503);
});

test('a session that opens while the gateway begins to stop serves its call, and is deleted afterwards', async () => {
  const server = await startLegacyServer();
  const bridge = await startBridge(server.url);
  // The first session that opens is the one in which the gateway gets to know the server.
  server.events.on('opened', () => bridge.sessions.size > 0 && bridge.sessions.drain());
  const deleted = new Promise<string>((resolve) =>
    server.events.on('deleted', (id: string) => usedBy(server).includes(id) && resolve(id)),
  );
  expect(textOf((await bridge.post('tools/call', call)).message.result)).toBe('hello');
  expect(opened(server)).toHaveLength(1);
  expect(await deleted).toBe(usedBy(server)[0]);
  expect(bridge.sessions.size).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});

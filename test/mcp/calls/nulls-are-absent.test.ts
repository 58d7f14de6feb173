import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, type Spine } from '../../support/spine.ts';
import { EVENTS, openRawServer } from '../modern-to-legacy/raw-legacy-server.ts';
import { modernPost, toolToml } from './modern-post.ts';

// Serializers write null for what is absent. No server and no client of others gets that null.

const TOOL = { name: 'look', inputSchema: { type: 'object' } };

let legacy: Awaited<ReturnType<typeof openRawServer>>;
let modern: RawMcp;
let spine: Spine;
beforeAll(async () => {
  legacy = await openRawServer(
    ({ message: { id, method, params } }, response) => {
      if (id === undefined) return '';
      const reply = (result: object) => JSON.stringify({ jsonrpc: '2.0', id, result: { ...result, _meta: null } });
      if (method === 'tools/list') return reply({ tools: [TOOL], nextCursor: null });
      if (method !== 'tools/call') return reply({});
      const news = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}';
      if (params?.['name'] === 'look') return reply({ content: [], structuredContent: null, isError: null });
      response.writeHead(200, EVENTS).end(`data: ${news}\n\ndata: ${reply({ content: [] })}\n\n`);
      return null;
    },
    {
      get: (_request, response) => {
        response.writeHead(200, EVENTS);
        response.end('id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}\n\n');
      },
    },
  );
  modern = await startRawMcp(
    ({ method }) =>
      method === 'tools/list'
        ? `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[${JSON.stringify(TOOL)}]}`
        : '{"content":[],"resultType":"complete","_meta":null}',
    [JSON.stringify(TOOL)],
  );
  spine = await startSpine({
    toml: `${toolToml({ name: 'legacy', url: legacy.url })}${toolToml({ name: 'modern', url: modern.url })}`,
  });
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await Promise.all([legacy.close(), modern.close()]);
});

const post = async (path: string, message: object, headers: Readonly<Record<string, string>> = {}) => {
  const reply = await fetch(`${spine.origin}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(message),
  });
  return { status: reply.status, session: reply.headers.get('mcp-session-id'), text: await reply.text() };
};

const INFO = { name: 'c', version: '1', title: null, websiteUrl: null, icons: null };
const CAPABILITIES = { roots: null, sampling: null, elicitation: { form: null, url: {} }, experimental: null };
const rpc = (method: string, params?: object | null) => ({ jsonrpc: '2.0', id: 1, method, params });

let from = { legacy: 0, modern: 0 };
beforeEach(() => {
  from = { legacy: legacy.seen.length, modern: modern.asked.length };
});
/** What the servers were sent since the test began. */
const sent = () => [...legacy.seen.slice(from.legacy), ...modern.asked.slice(from.modern)].map(({ text }) => text);

test.each(['legacy', 'modern'])('a session passes no null to a %s server', async (service) => {
  const initialize = { protocolVersion: '2025-11-25', capabilities: CAPABILITIES, clientInfo: INFO, _meta: null };
  const opened = await post(`/mcp/${service}`, rpc('initialize', initialize));
  expect([opened.status, opened.text]).toEqual([200, expect.stringContaining('"result"')]);
  const headers = { 'mcp-session-id': opened.session! };
  for (const [method, params] of [
    ['ping', null],
    ['tools/list', null],
    ['tools/list', { cursor: null, _meta: null }],
    ['tools/call', { name: 'look', arguments: null, task: null, _meta: { progressToken: null, 'acme/own': 1 } }],
  ] as const) {
    const { status, text } = await post(`/mcp/${service}`, rpc(method, params), headers);
    expect([status, text], `${method} ${JSON.stringify(params)}`).toEqual([200, expect.stringContaining('"result"')]);
  }
  const batch = await post(`/mcp/${service}`, [rpc('tools/call', { name: 'look', arguments: null })], headers);
  expect(batch.text).toContain('"result"');
  expect(sent().join()).not.toContain('null');
  expect(sent().filter((text) => text.includes('"arguments":{}'))).toHaveLength(2);
});

test.each(['/mcp/legacy', '/mcp/modern', '/mcp'])('nor does a request without a session: %s', async (path) => {
  const name = path === '/mcp' ? 'legacy__look' : 'look';
  for (const [method, params] of [
    ['ping', null],
    ['tools/list', null],
    ['tools/call', { name, arguments: null, _meta: null }],
  ] as const)
    expect((await post(path, rpc(method, params))).text, method).toContain('"result"');
  const meta = { 'io.modelcontextprotocol/clientInfo': INFO, progressToken: null, traceparent: null };
  const { message } = await modernPost(spine, path, 'tools/call', { name, arguments: null }, { meta });
  expect(message.result).toMatchObject({ content: [] });
  expect(sent().join()).not.toContain('null');
});

test('JSON-RPC takes them too', async () => {
  const params = { service: 'legacy', name: 'look', arguments: null, _meta: null };
  expect((await post('/api/v1/rpc', rpc('tools/call', params))).text).toContain('"content":[]');
  expect((await post('/api/v1/rpc', rpc('tools/list', { service: null }))).text).toContain('"result"');
  expect((await post('/api/v1/rpc', rpc('generations/list', { limit: null }))).text).toContain('"result"');
  expect(sent().join()).not.toContain('null');
});

test("a client gets none of a server's", async () => {
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const { session } = await post('/mcp/legacy', rpc('initialize', initialize));
  const headers = { 'mcp-session-id': session! };
  for (const [method, params] of [
    ['tools/call', { name: 'look' }],
    ['tools/call', { name: 'news' }],
    ['resources/subscribe', { uri: 'a:b' }],
    ['tools/list', {}],
  ] as const) {
    const { text } = await post('/mcp/legacy', rpc(method, params), headers);
    expect(text, `${method} ${JSON.stringify(params)}`).not.toContain('null');
    if (params === undefined || !('name' in params) || params.name !== 'news') continue;
    expect(text).toContain('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
  }
  const listening = new AbortController();
  const listened = await fetch(`${spine.origin}/mcp/legacy`, {
    signal: listening.signal,
    headers: { authorization: `Bearer ${spine.key}`, accept: 'text/event-stream', ...headers },
  });
  const reader = listened.body!.pipeThrough(new TextDecoderStream()).getReader();
  let heard = '';
  while (!heard.includes('list_changed')) heard += (await reader.read()).value ?? 'ended';
  listening.abort();
  expect(heard).toContain('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n');
  expect(heard).toContain('id: 7\n');
});

test('other wrong types are refused as before', async () => {
  for (const [params, words] of [
    ['x', 'params must be an object'],
    [{ _meta: 'null' }, 'params._meta must be an object'],
    [{ name: 'look', arguments: 'null' }, 'params.arguments is a string'],
  ] as const)
    expect((await post('/mcp/legacy', rpc('tools/call', params as object))).text).toContain(words);
  expect(sent().filter((text) => text.includes('tools/call'))).toEqual([]);
});

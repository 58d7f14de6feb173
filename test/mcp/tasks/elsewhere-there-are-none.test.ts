import { afterAll, beforeAll, expect, test } from 'vitest';
import { startMcpFixture, type McpFixture } from '../../support/mcp-fixture.ts';
import { startRawMcp, type RawMcp } from '../../support/raw-mcp.ts';
import { startSpine, UNHURRIED, type Spine } from '../../support/spine.ts';
import { callTool, modernPost, toolToml } from '../calls/modern-post.ts';
import { openRawServer } from '../modern-to-legacy/raw-legacy-server.ts';
import { callDeclared } from './task-client.ts';
import { startTaskServer, type TaskServer } from './task-server.ts';

const TOOLS = [
  '{"name":"plain","inputSchema":{"type":"object"}}',
  '{"name":"either","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}',
  '{"name":"needs","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}',
];

let fixture: McpFixture;
let raw: RawMcp;
let insisting: TaskServer;
let legacy: Awaited<ReturnType<typeof openRawServer>>;
let spine: Spine;
beforeAll(async () => {
  fixture = await startMcpFixture();
  const tools = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[${TOOLS.join(',')}]}`;
  raw = await startRawMcp(
    ({ method }) => (method === 'tools/list' ? tools : '{"resultType":"complete","content":[]}'),
    TOOLS,
  );
  insisting = await startTaskServer();
  legacy = await openRawServer(({ message }) =>
    JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answerOf(message.method) }),
  );
  const toml =
    toolToml({ name: 'fixture', url: fixture.url }) +
    toolToml({ name: 'raw', url: raw.url }) +
    toolToml({ name: 'legacy', url: legacy.url }) +
    toolToml({ name: 'insisting', url: insisting.url, provider: 'Insisting' });
  spine = await startSpine({ toml: UNHURRIED + toml });
});
afterAll(async () => {
  await spine.stop();
  await fixture.close();
  await raw.close();
  await legacy.close();
  await insisting.close();
});

function answerOf(method: string | undefined): object {
  if (method === 'tools/list') return { tools: TOOLS.map((text) => JSON.parse(text) as unknown) };
  return { content: [{ type: 'text', text: 'at once' }] };
}

const namesOf = (result: unknown) =>
  (result as { readonly tools: readonly { readonly name: string }[] }).tools.map(({ name }) => name);
const bare = async (path: string, method: string, params: object = {}) => {
  const response = await spine.post(path, { jsonrpc: '2.0', id: 1, method, params });
  return (await response.json()) as { readonly result: Record<string, unknown> };
};

test('what a modern server declares reaches modern clients as it is, and no client with a session', async () => {
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  expect((await modernPost(spine, '/mcp/fixture', 'server/discover')).message.result).toMatchObject({ capabilities });
  expect((await modernPost(spine, '/mcp', 'server/discover')).message.result).toMatchObject({ capabilities });
  for (const path of ['/mcp/fixture', '/mcp/raw', '/mcp']) {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
    const response = await spine.post(
      path,
      { jsonrpc: '2.0', id: 1, method: 'initialize', params },
      { accept: 'application/json, text/event-stream' },
    );
    expect(await response.text()).not.toContain('tasks');
  }
});

test('tools that can be called as a task alone are listed where tasks are carried', async () => {
  expect(namesOf((await modernPost(spine, '/mcp/raw', 'tools/list')).message.result)).toEqual([
    'plain',
    'either',
    'needs',
  ]);
  expect(namesOf((await bare('/mcp/raw', 'tools/list')).result)).toEqual(['plain', 'either']);
  expect(namesOf((await modernPost(spine, '/mcp/legacy', 'tools/list')).message.result)).toEqual(['plain', 'either']);
  expect(namesOf((await bare('/mcp/legacy', 'tools/list')).result)).toEqual(['plain', 'either']);
  const all = namesOf((await bare('/mcp?services=legacy', 'tools/list')).result);
  expect(all).toEqual(expect.arrayContaining(['legacy__plain', 'legacy__either']));
  expect(all).not.toContain('legacy__needs');
});

test.each(['raw', 'legacy'])('params.task is nothing to a server: %s', async (service) => {
  const params = { name: 'plain', arguments: { task: 1 }, task: { ttl: 60_000 } };
  expect((await bare(`/mcp/${service}`, 'tools/call', params)).result).toMatchObject({ content: expect.any(Array) });
  expect(
    (await callDeclared(spine, service, { task: 1 }, { params: { task: { ttl: 60_000 } } }, 'plain')).message.result,
  ).toMatchObject({
    content: expect.any(Array),
  });
  const calls = service === 'raw' ? raw.asked.map(({ text }) => text) : legacy.seen.map(({ text }) => text);
  const got = calls
    .map((text) => JSON.parse(text === '' ? '{}' : text) as { method?: string; params?: Record<string, unknown> })
    .filter(({ method }) => method === 'tools/call');
  expect(got).toHaveLength(2);
  for (const { params: given } of got) {
    expect(given).not.toHaveProperty('task');
    expect(given).toMatchObject({ arguments: { task: 1 } });
  }
  expect(await spine.faults()).toEqual([]);
});

test('a client that takes tasks gets an answer of a legacy server, which is not told of tasks', async () => {
  expect((await callDeclared(spine, 'legacy', {}, {}, 'plain')).message.result).toMatchObject({
    resultType: 'complete',
    content: [{ text: 'at once' }],
  });
  expect(legacy.seen.filter(({ text }) => text.includes('modelcontextprotocol/tasks'))).toEqual([]);
  expect((await callTool(spine, 'fixture', 'slow_compute', { seconds: 0 })).message.result).toMatchObject({
    resultType: 'complete',
    content: [{ type: 'text' }],
  });
  expect(await spine.faults()).toEqual([]);
});

test('nobody listens to tasks: their ids do not reach the server, and what it tells of them goes nowhere', async () => {
  const server = await startRawMcp(({ method, idText, params }) => {
    if (method !== 'subscriptions/listen') return '{"resultType":"complete","content":[]}';
    const subscription = { 'io.modelcontextprotocol/subscriptionId': JSON.parse(idText) as unknown };
    const event = (name: string, more: object) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', method: name, params: { ...more, _meta: subscription } })}\n\n`;
    const told = [
      event('notifications/subscriptions/acknowledged', { notifications: params['notifications'] as object }),
      event('notifications/tasks', { taskId: 'somebody', status: 'completed', result: { content: [] } }),
      `data: {"jsonrpc":"2.0","id":${idText},"result":{"resultType":"complete","_meta":${JSON.stringify(subscription)}}}\n\n`,
    ];
    return (response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(told.join(''));
  });
  const other = await startSpine({ toml: toolToml({ name: 'told', url: server.url }) });
  const { text } = await modernPost(other, '/mcp/told', 'subscriptions/listen', {
    notifications: { toolsListChanged: true, taskIds: ['somebody'] },
  });
  expect(text).toContain('acknowledged');
  expect(text).not.toContain('somebody');
  expect(server.asked.at(-1)!.params['notifications']).toEqual({ toolsListChanged: true });
  await other.stop();
  await server.close();
});

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const A2A_MESSAGE = { message: { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: '{}' }] } };

test.each([
  ['bare', '/mcp/insisting', rpc('tools/call', { name: 'job', arguments: {} })],
  ['JSON-RPC', '/rpc', rpc('tools/call', { service: 'insisting', name: 'job', arguments: {} })],
  ['as a chat model', '/chat/completions', { model: 'mcp/insisting/job', messages: [{ role: 'user', content: '{}' }] }],
  ['as an agent', '/a2a/mcp/insisting/job', rpc('SendMessage', A2A_MESSAGE)],
])(
  'called %s, a server is not told of tasks; one that begins a task nevertheless has failed, which is free',
  async (_name, path, body) => {
    await spine.quiet();
    const before = await spine.balance();
    const response = await spine.post(path, body, {
      'a2a-version': '1.0',
      accept: 'application/json, text/event-stream',
    });
    expect(await response.text()).toContain(
      'Provider Insisting failed: it answered with a task, but the request did not declare support for tasks',
    );
    expect(insisting.asked.at(-1)!.text).not.toContain('io.modelcontextprotocol/tasks');
    await spine.quiet();
    expect(await spine.balance()).toEqual(before);
    expect(await spine.faults()).toEqual([]);
  },
);

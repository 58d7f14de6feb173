import { CallToolResultSchema, DiscoverResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/core';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { connectV1, connectV2, textOf } from '../../../mcp/aggregate/aggregate-spine.ts';
import { modernPost } from '../../../mcp/calls/modern-post.ts';
import { startBridgeWorld, type WorldOptions } from './bridge-world.ts';
import { startLineServer } from './line-target.ts';
import { startTools, text } from './raw-tools.ts';

const said = (ask: { turns: readonly { parts: readonly object[] }[] }) =>
  (ask.turns.at(-1)!.parts[0] as { text: string }).text;

async function world(options: WorldOptions = {}) {
  const agent = await startLineServer((ask) => [
    { text: `${ask.name} heard ` },
    { text: said(ask) },
    { end: { taskId: 't-1', contextId: ask.contextId ?? 'c-1' } },
  ]);
  const model = await startLineServer((ask) => [
    { text: `you said ${said(ask)}` },
    { end: { finish: ask.maxTokens === 1 ? 'length' : 'stop' } },
  ]);
  const started = await startBridgeWorld({
    agents: { weather: { url: agent.url, perCall: 0.02, description: 'Knows the weather.' } },
    models: { 'acme/gpt': { url: model.url, perCall: 0.003 } },
    ...options,
  });
  return { ...started, agent, model };
}

const CLIENTS = { 'a session (SDK v1)': connectV1, 'the modern revision (SDK v2)': connectV2 } as const;

describe.each(Object.entries(CLIENTS))('with %s', (_name, connect) => {
  test.each(['', '/api/v1'])('an agent is a server with one tool, at %s/mcp/a2a/<agent>', async (prefix) => {
    const { origin, agent, charged, faults } = await world();
    const client = await connect(`${origin}${prefix}/mcp/a2a/weather`, 'alice');
    expect(client.getServerVersion()).toMatchObject({ name: 'a2a/weather', title: 'The weather' });
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      {
        name: 'send_message',
        title: 'The weather',
        description: 'Send a message to the agent The weather. Knows the weather.',
        inputSchema: { required: ['message'] },
        _meta: { 'tollgate/price': { per_call: '0.02', currency: 'USDC' } },
      },
    ]);
    const result = await client.callTool({
      name: 'send_message',
      arguments: { message: 'hello', context_id: 'c-7', task_id: 't-7' },
    });
    expect(result).toMatchObject({
      content: [{ type: 'text', text: 'weather heard hello' }],
      // Claude Code, Codex and others show their model this part alone.
      structuredContent: { answer: 'weather heard hello', task_id: 't-1', context_id: 'c-7', state: 'completed' },
      _meta: { 'tollgate/generation': { cost: '0.02', currency: 'USDC' } },
    });
    expect(agent.asked).toMatchObject([
      { contextId: 'c-7', taskId: 't-7', arguments: null, turns: [{ role: 'user' }] },
    ]);
    expect(await charged()).toBe(20_000n);
    expect(await faults()).toEqual([]);
  });

  test('a model is a server with one tool, at /mcp/model/<model>', async () => {
    const { origin, model, charged } = await world();
    const client = await connect(`${origin}/mcp/model/acme/gpt`, 'alice');
    const { tools } = await client.listTools();
    expect(tools).toMatchObject([
      { name: 'chat', inputSchema: { required: ['prompt'] }, _meta: { 'tollgate/price': { per_call: '0.003' } } },
    ]);
    const result = await client.callTool({
      name: 'chat',
      arguments: { prompt: 'hi', system: 'be brief', max_tokens: 9 },
    });
    expect(textOf(result)).toBe('you said hi');
    expect(result).not.toHaveProperty('structuredContent');
    expect(model.asked).toMatchObject([
      {
        maxTokens: 9,
        turns: [
          { role: 'system', parts: [{ kind: 'text', text: 'be brief' }] },
          { role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
        ],
      },
    ]);
    const cut = await client.callTool({ name: 'chat', arguments: { prompt: 'hi', max_tokens: 1 } });
    expect(cut._meta).toMatchObject({ 'tollgate/finish': 'length' });
    expect(await charged()).toBe(6_000n);
  });
});

test('a client that neither opened a session nor speaks the modern revision is answered as well', async () => {
  const { origin } = await world();
  const post = async (method: string, params: object = {}) => {
    const headers = { authorization: 'Bearer alice', 'content-type': 'application/json' };
    const reply = await fetch(`${origin}/mcp/a2a/weather`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params }),
    });
    return (await reply.json()) as {
      id: string;
      result?: Record<string, unknown>;
      error?: { code: number; message: string };
    };
  };
  expect(await post('ping')).toEqual({ jsonrpc: '2.0', id: 'x', result: {} });
  expect((await post('tools/list')).result).toEqual({ tools: [expect.objectContaining({ name: 'send_message' })] });
  const called = await post('tools/call', { name: 'send_message', arguments: { message: 'hello' } });
  expect(called.result).toMatchObject({
    content: [{ text: 'weather heard hello' }],
    structuredContent: { state: 'completed' },
  });
  expect(called.result).not.toHaveProperty('resultType');
  expect((await post('resources/list')).error).toMatchObject({ code: -32601 });
  expect((await post('tools/call', { name: 'chat' })).error).toEqual({
    code: -32602,
    message: 'There is no tool chat here: the tool is send_message',
  });
});

test('what the modern revision has in results is there', async () => {
  const { origin } = await world();
  const post = async (method: string, params = {}) =>
    (await modernPost({ origin, key: 'alice' }, '/mcp/a2a/weather', method, params)).message;
  const { result: discovered } = await post('server/discover');
  expect(DiscoverResultSchema.safeParse(discovered).error).toBeUndefined();
  expect(discovered).toMatchObject({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    cacheScope: 'private',
  });
  const { result: listed } = await post('tools/list');
  expect(ListToolsResultSchema.safeParse(listed).error).toBeUndefined();
  expect(listed).toMatchObject({ resultType: 'complete', ttlMs: expect.any(Number), cacheScope: 'private' });
  const { result: called } = await post('tools/call', { name: 'send_message', arguments: { message: 'hello' } });
  expect(CallToolResultSchema.safeParse(called).error).toBeUndefined();
  expect(called).toMatchObject({
    resultType: 'complete',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'a2a/weather' } },
  });
  const [tool] = (listed as unknown as { tools: { outputSchema: object }[] }).tools;
  expect(new Ajv().validate(tool!.outputSchema, called.structuredContent)).toBe(true);
  expect(
    (await modernPost({ origin, key: 'alice' }, '/mcp/a2a/weather', 'subscriptions/listen', { notifications: {} }))
      .message.error,
  ).toMatchObject({
    code: -32601,
  });
});

test('a tool service of exactly that name comes first', async () => {
  const agent = await startLineServer(() => [{ end: {} }]);
  const server = await startTools({ forecast: {} }, () => text('by the tool'));
  const { origin, mcp } = await startBridgeWorld({
    agents: { weather: { url: agent.url } },
    tools: { 'a2a/weather': { url: server.url } },
  });
  await mcp.toolsOf('a2a/weather');
  const { message } = await modernPost({ origin, key: 'alice' }, '/mcp/a2a/weather', 'tools/call', {
    name: 'forecast',
    arguments: {},
  });
  expect(message.result.content).toEqual([{ type: 'text', text: 'by the tool' }]);
});

test('an agent that there is not is no server', async () => {
  const { origin } = await world();
  for (const service of ['a2a/wether', 'model/weather', 'a2a', 'a2a/', 'mcp/weather', 'agent/weather']) {
    const { message } = await modernPost({ origin, key: 'alice' }, `/mcp/${service}`, 'tools/list');
    expect(message.error, service).toMatchObject({ code: -32013 });
  }
});

test('a key that may not use it does not see its tool', async () => {
  const { origin } = await world({ allowed: { carol: ['acme/gpt'] } });
  const list = async (service: string) =>
    (await modernPost({ origin, key: 'carol' }, `/mcp/${service}`, 'tools/list')).message;
  expect((await list('a2a/weather')).error).toMatchObject({
    code: -32012,
    message: 'This API key may not use weather. It is limited to: acme/gpt',
  });
  expect((await list('model/acme/gpt')).result.tools).toMatchObject([{ name: 'chat' }]);
  await expect(connectV1(`${origin}/mcp/a2a/weather`, 'carol')).rejects.toThrow(/may not use weather/);
});

import { expect, test } from 'vitest';
import { ask } from '../../support/spine.ts';
import { AGENT, message, TOOLS, useRpcWorld } from './rpc-world.ts';

// A method's result is what its endpoint answers to the same question.

const world = useRpcWorld();

test.each([
  ['models/list', {}, '/models'],
  ['models/list', { type: 'all' }, '/models?type=all'],
  ['models/list', { type: 'all', filter: 'agents' }, '/models?type=all&filter=agents'],
  ['agents/list', undefined, '/agents'],
  ['agents/get', { agent: AGENT }, `/agents/${AGENT}`],
  ['providers/list', {}, '/providers'],
  ['account/balance', {}, '/session/balance'],
  ['account/credits', {}, '/credits'],
  ['account/key', {}, '/key'],
])('%s %j', async (method, params, path) => {
  const [reply, page] = await Promise.all([world.call(method, params), world.spine.get(path)]);
  expect(reply).toEqual({ jsonrpc: '2.0', id: 1, result: await page.json() });
});

test('models/endpoints', async () => {
  const { result } = await world.call('models/endpoints', { model: 'test/model' });
  expect(result).toMatchObject({ data: { endpoints: [{ provider_name: 'Test', name: 'Test | test/model' }] } });
});

test('ping', async () => {
  expect(await world.call('ping')).toEqual({ jsonrpc: '2.0', id: 1, result: 'pong' });
});

test('chat/completions, with its cost in _meta', async () => {
  const response = await world.post({
    jsonrpc: '2.0',
    id: 'c',
    method: 'chat/completions',
    params: ask('hello !tokens:5'),
  });
  const { id, result } = (await response.json()) as { id: string; result: Record<string, never> };
  expect(id).toBe('c');
  const generation = response.headers.get('x-generation-id');
  expect(result).toMatchObject({
    object: 'chat.completion',
    usage: { completion_tokens: 5 },
    _meta: { 'tollgate/generation': { id: generation, cost: response.headers.get('x-cost-usd'), currency: 'USDC' } },
  });
  const shown = await world.call('generation/get', { id: generation });
  expect(shown.result).toMatchObject({
    data: { id: generation, state: 'settled', request_id: response.headers.get('x-request-id') },
  });
});

test('the body of a chat is passed on as it is written, less _meta', async () => {
  world.spine.provider.log.length = 0;
  await world.post(
    `{"jsonrpc":"2.0","id":1,"method":"chat/completions","params":{"_meta":{"a":1},"model":"test/model","seed":12345678901234567890,"messages":[{"role":"user","content":"hi"}]}}`,
  );
  const sent = JSON.stringify(world.spine.provider.log[0]!.body);
  expect(sent).not.toContain('_meta');
  expect(sent).toContain('"hi"');
});

test('tools of one service, and of all', async () => {
  const one = await world.call('tools/list', { service: TOOLS });
  const all = await world.call('tools/list');
  const names = (reply: typeof one) => (reply.result!['tools'] as { name: string }[]).map(({ name }) => name);
  expect(names(one)).toContain('test_simple_text');
  const prefixed = names(all).find((name) => name.endsWith('__test_simple_text'));
  expect(prefixed).toBeDefined();
  for (const params of [
    { service: TOOLS, name: 'test_simple_text', arguments: {} },
    { name: prefixed, arguments: {} },
  ])
    expect(await world.call('tools/call', params)).toMatchObject({
      result: {
        content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
        _meta: { 'tollgate/generation': { cost: '0.002' } },
      },
    });
});

test('messages and tasks of an agent, in both versions', async () => {
  const sent = await world.call('message/send', { agent: AGENT, message: message('task yes') });
  expect(sent).toMatchObject({
    result: { kind: 'task', status: { state: 'completed' }, metadata: { 'tollgate/generation': { cost: '0.003' } } },
  });
  const { id } = sent.result as { id: string };
  // The task itself says whose it is.
  for (const agent of [{ agent: AGENT }, {}]) {
    expect(await world.call('tasks/get', { ...agent, id })).toMatchObject({ result: { kind: 'task', id } });
    expect(await world.call('GetTask', { ...agent, id })).toMatchObject({
      result: { id, status: { state: 'TASK_STATE_COMPLETED' } },
    });
  }
  for (const method of ['tasks/list', 'ListTasks'])
    expect(JSON.stringify(await world.call(method, { agent: AGENT }))).toContain(id);
  const modern = await world.call('SendMessage', {
    agent: AGENT,
    message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'echo hi' }] },
  });
  expect(modern).toMatchObject({ result: { message: { parts: [{ text: 'hi' }] } } });
});

test.each([
  ['tasks/cancel', 'canceled'],
  ['CancelTask', 'TASK_STATE_CANCELED'],
])('a task is cancelled by %s', async (method, state) => {
  const sent = await world.call('message/send', {
    agent: AGENT,
    message: message('wait'),
    configuration: { blocking: false },
  });
  const { id } = sent.result as { id: string };
  await world.agent.receives(({ body }) => body.includes('wait'));
  expect(await world.call(method, { id })).toMatchObject({ result: { id, status: { state } } });
});

test.each([
  ['models/endpoints', { model: '..' }],
  ['models/endpoints', { model: 'a/../../keys' }],
  ['models/endpoints', { model: '' }],
  ['models/endpoints', { model: 7 }],
  ['models/endpoints', {}],
  ['agents/get', { agent: '.' }],
  ['agents/get', { agent: 'x'.repeat(513) }],
  ['tools/call', { service: '../../admin/v1/accounts', name: 'x' }],
  ['tools/call', { service: 7, name: 'x' }],
  ['tools/call', { service: '', name: 'x' }],
  ['message/send', { agent: 'a//b', message: message('x') }],
  ['models/list', { type: { $ne: 1 } }],
])('what is no name leads nowhere: %s %j', async (method, params) => {
  expect(await world.call(method, params)).toMatchObject({
    error: { code: -32602, data: { type: 'invalid_request', param: expect.any(String) as string } },
  });
});

test('a service of null is none: the name is one of all tools', async () => {
  const answer = await world.call('tools/call', { service: null, name: 'x' });
  expect(answer).toEqual(await world.call('tools/call', { name: 'x' }));
  expect(answer).toMatchObject({ error: { code: -32602, message: expect.stringContaining('x') as string } });
});

test.each(['%2e%2e', '..%2f..%2fkeys', '?type=all', '#x', 'a b', 'é', '\ud800'])(
  'a name is a name, however it looks: %s',
  async (agent) => {
    expect(await world.call('agents/get', { agent })).toMatchObject({ error: { code: -32013 } });
  },
);

test('the envelope of an MCP revision has an endpoint of its own', async () => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  expect(await world.call('tools/list', { _meta })).toMatchObject({
    error: { code: -32602, message: expect.stringContaining('POST /mcp') as string },
  });
});

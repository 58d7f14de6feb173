import { CallToolResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/core';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { connectV1, connectV2, textOf } from '../../../mcp/aggregate/aggregate-spine.ts';
import { modernPost, type Tree } from '../../../mcp/calls/modern-post.ts';
import { startBridgeWorld, type WorldOptions } from './bridge-world.ts';
import { startLineServer } from './line-target.ts';
import { startTools, text } from './raw-tools.ts';

async function world(options: (url: string) => WorldOptions) {
  const line = await startLineServer((ask) => [{ text: `${ask.name} here` }, { end: { contextId: 'c' } }]);
  const started = await startBridgeWorld(options(line.url));
  const post = async (method: string, params = {}, key = 'alice', query = '') =>
    (await modernPost({ origin: started.origin, key }, `/mcp${query}`, method, params)).message;
  const list = async (key = 'alice', query = '') => {
    const { result } = await post('tools/list', {}, key, query);
    expect(ListToolsResultSchema.safeParse(result).error).toBeUndefined();
    return (result.tools as unknown as { name: string }[]).map(({ name }) => name);
  };
  const find = async (args: object, key = 'alice', query = '') =>
    (await post('tools/call', { name: 'find_tools', arguments: args }, key, query)).result.structuredContent!;
  return { ...started, line, post, list, find };
}

const agents = (url: string) => ({
  weather: { url, perCall: 0.02, description: 'Forecasts of the weather' },
  'acme/travel': { url, perCall: 0.05, description: 'Books trips' },
});
const models = (url: string) => ({
  'acme/gpt': { url, perCall: 0.003, description: 'Writes poems about the weather' },
});

const CLIENTS = { 'a session': connectV1, 'the modern revision': connectV2 } as const;

test.each(Object.entries(CLIENTS))(
  'with %s, agents and models are asked by tools of the one address',
  async (_name, connect) => {
    const { origin, charged, endings, faults } = await world((url) => ({ agents: agents(url), models: models(url) }));
    const client = await connect(`${origin}/mcp`, 'alice');
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['find_tools', 'ask_agent', 'ask_model']);
    const asked = await client.callTool({ name: 'ask_agent', arguments: { agent: 'acme/travel', message: 'to Rome' } });
    expect(asked).toMatchObject({
      content: [{ text: 'acme/travel here' }],
      structuredContent: { context_id: 'c', state: 'completed' },
      _meta: { 'tollgate/generation': { cost: '0.05' } },
    });
    expect(textOf(await client.callTool({ name: 'ask_model', arguments: { model: 'acme/gpt', prompt: 'hi' } }))).toBe(
      'acme/gpt here',
    );
    expect(await charged()).toBe(53_000n);
    expect(endings).toEqual(['agent acme/travel: stop', 'model acme/gpt: stop']);
    expect(await faults()).toEqual([]);
  },
);

describe('what is listed', () => {
  test('a tool for agents where there are any, one for models where there are any', async () => {
    const none = await world(() => ({}));
    expect(await none.list()).toEqual([]);
    expect(
      (await none.post('tools/call', { name: 'ask_agent', arguments: { agent: 'weather', message: 'hi' } })).error,
    ).toMatchObject({
      code: -32602,
    });
    const some = await world((url) => ({ models: models(url) }));
    expect(await some.list()).toEqual(['find_tools', 'ask_model']);
  });

  test('beside the tools of services, and beside find_tools where there are too many', async () => {
    const few = await startTools({ read: {} }, () => text('done'));
    const many = await startTools(Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`t${i}`, {}])), () =>
      text('done'),
    );
    const { list, mcp } = await world((url) => ({
      agents: agents(url),
      models: models(url),
      tools: { few: { url: few.url }, many: { url: many.url } },
    }));
    await Promise.all([mcp.toolsOf('few'), mcp.toolsOf('many')]);
    expect(await list()).toEqual(['find_tools', 'call_tool', 'ask_agent', 'ask_model']);
    expect(await list('alice', '?services=few')).toEqual(['few__read']);
    expect(await list('alice', '?services=few,a2a/weather')).toEqual(['few__read', 'find_tools', 'ask_agent']);
  });

  test('what the key may use and the address selects', async () => {
    const { list, post, endings } = await world((url) => ({
      agents: agents(url),
      models: models(url),
      allowed: { carol: ['weather'], dave: ['acme/gpt'], eve: ['files'] },
    }));
    expect(await list('carol')).toEqual(['find_tools', 'ask_agent']);
    expect(await list('dave')).toEqual(['find_tools', 'ask_model']);
    expect(await list('eve')).toEqual([]);
    expect(await list('alice', '?services=model/acme/gpt')).toEqual(['find_tools', 'ask_model']);
    const ask = (agent: string, key: string, query = '') =>
      post('tools/call', { name: 'ask_agent', arguments: { agent, message: 'hi' } }, key, query);
    expect((await ask('weather', 'carol')).result.content).toMatchObject([{ text: 'weather here' }]);
    expect((await ask('acme/travel', 'carol')).error).toMatchObject({
      code: -32012,
      message: expect.stringContaining('may not use acme/travel'),
    });
    // An address that selects another agent does not have this one.
    expect((await ask('weather', 'alice', '?services=a2a/acme/travel')).result).toMatchObject({
      isError: true,
      content: [{ text: 'There is no agent weather here.' }],
    });
    expect(endings).toEqual(['agent weather: stop']);
  });
});

test('find_tools finds agents and models, says what they cost and how they are asked', async () => {
  const { find, post, list } = await world((url) => ({
    agents: agents(url),
    models: models(url),
    allowed: { carol: ['acme/travel'] },
  }));
  const found = await find({ query: 'weather tomorrow' });
  expect(found).toEqual({
    tools: [],
    searched: 0,
    agents: [
      {
        agent: 'weather',
        title: 'The weather',
        description: 'Forecasts of the weather',
        price: { per_call: '0.02', currency: 'USDC' },
        call: { name: 'ask_agent', arguments: { agent: 'weather' } },
      },
    ],
    models: [
      {
        model: 'acme/gpt',
        title: 'The acme/gpt',
        description: 'Writes poems about the weather',
        price: { per_call: '0.003', currency: 'USDC' },
        call: { name: 'ask_model', arguments: { model: 'acme/gpt' } },
      },
    ],
  });
  const names = ({ agents: some }: Tree) =>
    (some as unknown as { agent: string }[] | undefined)?.map(({ agent }) => agent);
  expect(names(await find({ query: '' }))).toEqual(['weather', 'acme/travel']);
  expect(names(await find({ query: '', limit: 1 }))).toEqual(['weather']);
  expect(names(await find({ query: '', services: ['a2a/acme/travel'] }))).toEqual(['acme/travel']);
  expect(names(await find({ query: '' }, 'carol'))).toEqual(['acme/travel']);
  expect(await find({ query: '' }, 'carol')).not.toHaveProperty('models');
  expect(names(await find({ query: '' }, 'alice', '?services=files'))).toBeUndefined();

  // What it says can be called as it says it.
  const { name, arguments: args } = (found.agents as unknown as { call: { name: string; arguments: object } }[])[0]!
    .call;
  const { result } = await post('tools/call', { name, arguments: { ...args, message: 'hi' } });
  expect(CallToolResultSchema.safeParse(result).error).toBeUndefined();
  expect(result.content).toMatchObject([{ text: 'weather here' }]);
  expect(await list()).toContain(name);
});

test('what find_tools gives is what its schema says', async () => {
  const many = await startTools(Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`t${i}`, {}])), () =>
    text('done'),
  );
  const { post, find, mcp } = await world((url) => ({ agents: agents(url), tools: { many: { url: many.url } } }));
  await mcp.toolsOf('many');
  const [tool] = (await post('tools/list')).result.tools as unknown as { outputSchema: object }[];
  expect(new Ajv().validate(tool!.outputSchema, await find({ query: 'weather' }))).toBe(true);
});

test('wrong arguments and names are told as errors of the tool, which a model can mend, and cost nothing', async () => {
  const { post, charged, endings } = await world((url) => ({ agents: agents(url), models: models(url) }));
  const call = async (name: string, args: unknown) => (await post('tools/call', { name, arguments: args })).result;
  const fails = async (name: string, args: unknown, why: string | RegExp) => {
    const { isError, content, resultType } = await call(name, args);
    expect({ isError, resultType }).toEqual({ isError: true, resultType: 'complete' });
    expect((content as unknown as { text: string }[])[0]!.text).toMatch(why);
  };
  await fails(
    'ask_agent',
    { agent: 'wether', message: 'hi' },
    /^There is no agent wether here\. The nearest: weather$/,
  );
  await fails('ask_model', { model: 'weather', prompt: 'hi' }, 'There is no model weather here.');
  await fails('ask_agent', { message: 'hi' }, 'agent must be the name of an agent, a string');
  await fails('ask_agent', { agent: 'weather' }, 'message must be a string that is not empty');
  await fails('ask_agent', { agent: 'weather', message: '  ' }, 'message must be a string');
  await fails('ask_agent', { agent: 'weather', message: 'hi', task_id: 7 }, 'task_id must be an id');
  await fails(
    'ask_model',
    { model: 'acme/gpt', prompt: 'hi', max_tokens: 0 },
    'max_tokens must be an integer from 1 on',
  );
  await fails('ask_model', { model: 'acme/gpt', prompt: 'hi', system: {} }, 'system must be a string');
  await fails(
    'ask_model',
    { model: 'acme/gpt', prompt: 'hi', temperature: 1 },
    'Unknown argument "temperature": the arguments are model, prompt, system, max_tokens',
  );
  await fails('ask_model', { model: 'acme/gpt', prompt: 'hi', max_tokens: 5_000 }, 'gives at most 1000 tokens');
  await fails('ask_model', { model: 'constructor', prompt: 'hi' }, 'There is no model constructor here.');
  expect(await charged()).toBe(0n);
  expect(endings).toEqual([]);
});

test.each([
  ['invalid_request', true],
  ['invalid_model', true],
  ['not_found', true],
  ['unprocessable', true],
  ['permission_denied', false],
  ['content_policy', false],
])(
  'an error that other arguments mend is the result of the tool, any other is an error: %s',
  async (task_id, isResult) => {
    const { post } = await world((url) => ({ agents: agents(url) }));
    const args = { agent: 'weather', message: 'hi', task_id };
    const { result, error } = await post('tools/call', { name: 'ask_agent', arguments: args });
    if (isResult) expect(result).toMatchObject({ isError: true, content: [{ text: 'weather refuses this task' }] });
    else expect(error).toMatchObject({ message: 'weather refuses this task', data: { type: task_id } });
  },
);

import { describe, expect, test } from 'vitest';
import { ANYONE, keyFor, namesIn, request, resultOf, startAggregate } from './aggregate-world.ts';
import { prefixOf } from '../../../src/mcp/own/aggregate/names.ts';
import type { RequestDestination } from '../../../src/mcp/own/aggregate/resolve.ts';

const SERVICES = {
  'acme/files': {
    tools: [{ name: 'read.file' }, { name: 'write' }],
    prompts: [{ name: 'tidy up' }],
    resources: [{ uri: 'file:///a', name: 'a' }],
  },
  'acme/web': { tools: [{ name: 'read' }] },
};

const start = async () => {
  const { aggregate, ...world } = await startAggregate(SERVICES);
  const scope = aggregate.scope(ANYONE, null);
  const resolve = (method: string, params: object | string) => aggregate.resolve(request(method, params), scope);
  return { ...world, aggregate, resolve };
};

const errorOf = (resolution: RequestDestination) => (resolution.kind === 'refused' ? resolution.error : null);

test('a name is that of the service, and everything else in the message stays as it came', async () => {
  const { aggregate, resolve } = await start();
  const [read] = aggregate.scope(ANYONE, null).services;
  expect(read).toBe('acme/files');
  const exposed = /acme_files__read_file_[0-9][0-9a-z]{12}/.exec(
    JSON.stringify(await aggregate.list('tools/list', null, aggregate.scope(ANYONE, null), false)),
  )![0];
  const params = (name: string) =>
    `{"_meta":{ "k":1.0 }, "n\\u0061me" : ${JSON.stringify(name)},"arguments":{"name":"x" ,"big":12345678901234567890}, "requestState":"s"}`;
  expect(resolve('tools/call', params(exposed))).toEqual({
    kind: 'service',
    service: 'acme/files',
    text: request('tools/call', params('read.file')).text,
  });
});

test('a tool is called by its name of before as well: clients store names', async () => {
  const { resolve } = await start();
  const to = (name: string) => ({ kind: 'service', service: 'acme/files', text: request('tools/call', { name }).text });
  for (const name of ['acme--files__write', 'acme_files__write'])
    expect(resolve('tools/call', { name })).toEqual(to('write'));
  expect(resolve('tools/call', { name: 'acme--files__read.file' })).toEqual(to('read.file'));
  expect(resolve('tools/call', { name: 'acme--files__no_such_thing' })).toMatchObject({ kind: 'refused' });
  // Its digest had 24 bits, which another name can be made to have.
  expect(resolve('tools/call', { name: 'acme_files__read_file_0ab2bb' })).toMatchObject({ kind: 'refused' });
});

test('a dash stays, and the name with a digest that it was written with before is taken too', async () => {
  const services = {
    'acme/files': { tools: [{ name: 'get-env' }, { name: 'get_env' }], prompts: [{ name: 'tidy-up' }] },
  };
  const { aggregate } = await startAggregate(services);
  const scope = aggregate.scope(ANYONE, null);
  const listed = async (kind: 'tools' | 'prompts') =>
    namesIn((await resultOf(aggregate.list(`${kind}/list`, null, scope, false)))[kind]);
  expect(await listed('tools')).toEqual(['acme_files__get-env', 'acme_files__get_env']);
  expect(await listed('prompts')).toEqual(['acme_files__tidy-up']);
  const resolve = (method: string, name: string) => aggregate.resolve(request(method, { name }), scope);
  const to = (method: string, name: string) => ({
    kind: 'service',
    service: 'acme/files',
    text: request(method, { name }).text,
  });
  for (const name of ['acme_files__get-env', 'acme_files__get_env_9kdnbws65fqqs'])
    expect(resolve('tools/call', name)).toEqual(to('tools/call', 'get-env'));
  expect(resolve('tools/call', 'acme_files__get_env')).toEqual(to('tools/call', 'get_env'));
  for (const name of ['acme_files__tidy-up', 'acme_files__tidy_up_85dccn7u6sv5i'])
    expect(resolve('prompts/get', name)).toEqual(to('prompts/get', 'tidy-up'));
  for (const name of ['acme_files__get_env_0123456789abc', 'acme_files__tidy_up_85dccn7u6sv5i'])
    expect(resolve('tools/call', name)).toMatchObject({ kind: 'refused' });
});

test('a service whose short digest is that of another takes no call from it', async () => {
  const [victim, evil] = ['acme/search-engine-with-a-long-name', 'evil/search-engine-6at9v'];
  const { aggregate } = await startAggregate({
    [evil]: { tools: [{ name: 'find' }] },
    [victim]: { tools: [{ name: 'find' }] },
  });
  const scope = aggregate.scope(ANYONE, null);
  const serviceOf = (name: string) => {
    const resolution = aggregate.resolve(request('tools/call', { name }), scope);
    return resolution.kind === 'service' ? resolution.service : null;
  };
  const names = namesIn((await resultOf(aggregate.list('tools/list', null, scope, false)))['tools']) as string[];
  expect(
    names
      .map(serviceOf)
      .filter((service) => service !== null)
      .sort(),
  ).toEqual([victim, evil]);
  expect(serviceOf(`${prefixOf(victim)}__find`)).toBe(victim);
  // Its name when both had this digest.
  expect(serviceOf('search_en_13e8fb__find')).toBeNull();
});

test('prompts, resources, subscriptions and completions are those of their service', async () => {
  const { aggregate, resolve } = await start();
  const prompt = /acme_files__tidy_up_[0-9][0-9a-z]{12}/.exec(
    JSON.stringify(await aggregate.list('prompts/list', null, aggregate.scope(ANYONE, null), false)),
  )![0];
  const to = (method: string, params: object) => ({
    kind: 'service',
    service: 'acme/files',
    text: request(method, params).text,
  });
  expect(resolve('prompts/get', { name: prompt, arguments: {} })).toEqual(
    to('prompts/get', { name: 'tidy up', arguments: {} }),
  );
  for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) {
    expect(resolve(method, { uri: 'acme--files+file:///a' })).toEqual(to(method, { uri: 'file:///a' }));
    // Servers know more than they list.
    expect(resolve(method, { uri: 'ui://acme--files/x/y' })).toEqual(to(method, { uri: 'ui://x/y' }));
  }
  expect(resolve('completion/complete', { ref: { type: 'ref/prompt', name: prompt }, argument: {} })).toEqual(
    to('completion/complete', { ref: { type: 'ref/prompt', name: 'tidy up' }, argument: {} }),
  );
  expect(resolve('completion/complete', { ref: { type: 'ref/resource', uri: 'acme--files+file:///{path}' } })).toEqual(
    to('completion/complete', { ref: { type: 'ref/resource', uri: 'file:///{path}' } }),
  );
});

describe('call_tool', () => {
  test('is the call of the tool that it names', async () => {
    const { resolve } = await start();
    const wrapped =
      '{"name":"call_tool","_meta":{"a":1.0},"arguments":{"arguments":{ "x" : 1.50 },"name":"acme_web__read"}}';
    expect(resolve('tools/call', wrapped)).toEqual({
      kind: 'service',
      service: 'acme/web',
      text: request('tools/call', '{"name":"read","_meta":{"a":1.0},"arguments":{ "x" : 1.50 }}').text,
    });
    expect(resolve('tools/call', '{"name":"call_tool","arguments":{"name":"acme_web__read"}}')).toMatchObject({
      text: request('tools/call', '{"name":"read"}').text,
    });
    expect(
      resolve('tools/call', '{"name":"call_tool","arguments":{"name":"acme_web__read","arguments": null}}'),
    ).toMatchObject({ text: request('tools/call', '{"name":"read","arguments":{}}').text });
    expect(
      resolve('tools/call', { name: 'call_tool', arguments: { name: 'find_tools', arguments: { query: 'x' } } }),
    ).toEqual({
      kind: 'find',
      arguments: { query: 'x' },
    });
  });

  test.each([
    '{"name":"call_tool"}',
    '{"name":"call_tool","arguments":7}',
    '{"name":"call_tool","arguments":{}}',
    '{"name":"call_tool","arguments":{"name":"call_tool"}}',
    '{"name":"call_tool","arguments":{"name":"acme_web__read","arguments":[]}}',
    // Readers differ in which of two they take: another could be billed than is called.
    '{"name":"call_tool","arguments":{"name":"acme_files__write","name":"acme_web__read"}}',
    '{"name":"call_tool","arguments":{"name":"acme_web__read","arguments":{},"arguments":{}}}',
  ])('%s is refused', async (params) => {
    const { resolve } = await start();
    expect(errorOf(resolve('tools/call', params))).toMatchObject({ code: -32602 });
  });
});

test('find_tools is always callable', async () => {
  const { aggregate } = await start();
  const none = aggregate.scope(keyFor(), null);
  expect(aggregate.resolve(request('tools/call', { name: 'find_tools', arguments: { query: '' } }), none)).toEqual({
    kind: 'find',
    arguments: { query: '' },
  });
});

test('a name that there is not is refused with the nearest', async () => {
  const { aggregate, resolve } = await start();
  expect(errorOf(resolve('tools/call', { name: 'acme_web__raed' }))).toMatchObject({
    code: -32602,
    data: { nearest: ['acme_web__read'] },
  });
  expect(errorOf(resolve('tools/call', { name: 'acme-web__read' }))?.message).toContain('The nearest: acme_web__read');
  expect(errorOf(resolve('tools/call', { name: 'find_tool' }))).toMatchObject({ data: { nearest: ['find_tools'] } });
  expect(errorOf(resolve('tools/call', { name: 'zzz\u0007' }))).toEqual({
    code: -32602,
    message: 'There is no tool zzz here. tools/list shows all',
    data: { nearest: [] },
  });
  for (const params of [{}, { name: 7 }, { name: '' }, { name: 'constructor__x' }, { name: 'x'.repeat(100_000) }])
    expect(errorOf(resolve('tools/call', params))).toMatchObject({ code: -32602 });
  for (const uri of ['file:///a', 'acme--none+file:///a', 'ui://x', 7])
    expect(errorOf(resolve('resources/read', { uri }))).toMatchObject({ code: -32602 });
  for (const params of [{}, { ref: 7 }, { ref: {} }, '{"ref":{"type":"ref/prompt","name":"a","name":"b"}}'])
    expect(errorOf(resolve('completion/complete', params))).toMatchObject({ code: -32602 });
  expect(errorOf(resolve('tools/list', {}))).toMatchObject({ code: -32601 });

  // What a key may not use is not there for it, and is not named to it.
  const scope = aggregate.scope(keyFor('acme/files'), null);
  expect(errorOf(aggregate.resolve(request('tools/call', { name: 'acme_web__read' }), scope))?.message).not.toContain(
    'web__read,',
  );
  expect(errorOf(aggregate.resolve(request('resources/read', { uri: 'acme--web+x:y' }), scope))).toMatchObject({
    code: -32602,
  });
});

test('a tool of a service whose list is not known may be there', async () => {
  const { aggregate, catalog } = await start();
  const [first] = catalog.offers('tool');
  catalog.replace('new', [
    {
      ...first!,
      id: 'tool/id-A:acme/new',
      service: 'acme/new',
      endpoint: { kind: 'direct', baseUrl: 'http://127.0.0.1:9/mcp', headers: {} },
    },
  ]);
  const resolution = aggregate.resolve(
    request('tools/call', { name: 'acme_new__anything' }),
    aggregate.scope(ANYONE, null),
  );
  expect(resolution).toMatchObject({
    kind: 'service',
    service: 'acme/new',
    text: request('tools/call', { name: 'anything' }).text,
  });
});

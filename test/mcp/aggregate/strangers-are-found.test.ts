import { expect, onTestFinished, test } from 'vitest';
import { dialIn, offeredModel } from '../../support/dial-in.ts';
import { serveRaw, startCatalogue, toolOffer } from '../catalogue/catalogue-world.ts';
import { createAggregate } from '../../../src/mcp/own/aggregate/aggregate.ts';
import { toolToml } from '../calls/modern-post.ts';
import {
  call,
  messagesOf,
  startAggregateSpine,
  streamOf,
  withAggregate,
  type AggregateSpine,
} from './aggregate-spine.ts';
import { solanaWallet } from '../../support/wallets.ts';
import { ANYONE, keyFor, namesIn, NOBODY, request, resultOf } from './aggregate-world.ts';

// In an open market the lists of everybody have the operator's tools. Those of strangers are found, few of each.

const tool = (name: string, description: string, schema: object = {}) => ({
  name,
  description,
  inputSchema: { type: 'object', ...schema },
});
const serve = async (tools: readonly object[]) => {
  const { url } = await serveRaw((method) => {
    if (method === 'tools/list') return JSON.stringify({ tools });
    if (method === 'prompts/list') return '{"prompts":[{"name":"tell"}]}';
    if (method === 'resources/list') return '{"resources":[{"uri":"file:///a","name":"a"}]}';
    return method === 'tools/call' ? '{"content":[{"type":"text","text":"done"}]}' : null;
  });
  return url;
};

const MANY = Array.from({ length: 220 }, (_, at) =>
  tool(`t${at}`, `The weather forecast. ${'z'.repeat(2_000)}`, { description: 'y'.repeat(2_000), properties: {} }),
);

const modelOfStranger = (name: string) => offeredModel({ url: 'http://127.0.0.1:9', name, provider: 'Stranger' });

interface Found {
  readonly tools: readonly { name: string; service: string; description: string; inputSchema: object }[];
  readonly models: readonly { model: string }[];
}

/** A gateway with a tool of its own, and a provider with these services that it has heard of. */
async function startMarket(services: Readonly<Record<string, readonly object[]>>, { blocks = '', letIn = false } = {}) {
  const wallet = solanaWallet();
  const own = await serve([tool('forecast', 'The weather forecast of a city')]);
  const spine = await startAggregateSpine(
    { 'acme/weather': own },
    { toml: `[tunnel]\nproviders = ${letIn ? `["${wallet.providerId}"]` : '"anyone"'}\n` },
  );
  const offered = await Promise.all(
    Object.entries(services).map(async ([name, tools]) =>
      toolToml({ name, url: await serve(tools), provider: 'Stranger' }),
    ),
  );
  const proxy = await dialIn({ router: spine.origin, services: offered.join('') + blocks, wallet });
  onTestFinished(async () => void (await proxy.close()));
  await withAggregate(spine).known(Object.keys(services));
  return spine;
}

async function ask(spine: AggregateSpine, method: string, options: Parameters<AggregateSpine['send']>[2] = {}) {
  const [message] = await messagesOf(await spine.send({ jsonrpc: '2.0', id: 1, method, params: {} }, null, options));
  return message!['result'] as Readonly<Record<string, Record<string, unknown>[]>>;
}

async function find(spine: AggregateSpine, args: object): Promise<Found> {
  const [message] = await messagesOf(await spine.send(call(1, 'find_tools', args)));
  return (message!['result'] as { structuredContent: Found }).structuredContent;
}

test('lists have the tools of the operator, and those of strangers that the key or the address names', async () => {
  const spine = await startMarket({ 'mal/many': MANY, 'zoo/one': [tool('look', 'Looks'), tool('feed', 'Feeds')] });
  const listed = async (options: Parameters<AggregateSpine['send']>[2] = {}) =>
    namesIn((await ask(spine, 'tools/list', options))['tools']).filter((name) => name !== 'ask_model');
  const GATEWAY = ['find_tools', 'call_tool'];
  expect(await listed()).toEqual(['acme_weather__forecast', ...GATEWAY]);
  expect(namesIn((await ask(spine, 'prompts/list'))['prompts'])).toEqual(['acme_weather__tell']);
  expect(namesIn((await ask(spine, 'resources/list'))['resources'], 'uri')).toEqual(['acme--weather+file:///a']);

  let keys = 0;
  const keyed = async (...patterns: readonly string[]) => {
    const { key } = await spine.tenant(`key-${keys++}`, '1', { allowedServices: patterns });
    return listed({ key });
  };
  expect(await keyed('*')).toEqual(['acme_weather__forecast', ...GATEWAY]);
  expect(await keyed('*', 'zoo/*')).toEqual(['acme_weather__forecast', 'zoo_one__feed', 'zoo_one__look', ...GATEWAY]);
  expect(await keyed('*', 'zoo/one/look')).toEqual(['acme_weather__forecast', 'zoo_one__look', ...GATEWAY]);
  expect(await keyed('zoo/one')).toEqual(['zoo_one__feed', 'zoo_one__look']);
  // Who names too much loses it, not what is the operator's.
  expect(await keyed('*', 'mal/many', 'zoo/one')).toEqual([
    'acme_weather__forecast',
    'zoo_one__feed',
    'zoo_one__look',
    ...GATEWAY,
  ]);
  expect(await listed({ url: `${spine.mcp}?services=zoo/one` })).toEqual(['zoo_one__feed', 'zoo_one__look']);
  expect(namesIn((await ask(spine, 'prompts/list', { url: `${spine.mcp}?services=zoo/one` }))['prompts'])).toEqual([
    'zoo_one__tell',
  ]);

  // What is not listed is called by its own name, through call_tool, and at its own address.
  for (const [body, url] of [
    [call(1, 'zoo_one__look'), spine.mcp],
    [call(1, 'call_tool', { name: 'zoo_one__look', arguments: {} }), spine.mcp],
    [call(1, 'look'), `${spine.mcp}/zoo/one`],
  ] as const) {
    const [message] = await messagesOf(await spine.send(body, null, { url }));
    expect(message).toMatchObject({ result: { content: [{ text: 'done' }] } });
  }
  expect(await spine.faults()).toEqual([]);
});

test('a search has two results of a stranger, with a kilobyte of each, and all of a tool that it names', async () => {
  const spine = await startMarket(
    { 'mal/many': MANY, 'mal/more': MANY.slice(0, 5), 'zoo/look': [tool('weather', 'Weather')] },
    { blocks: ['a', 'b', 'c'].map((name) => modelOfStranger(`mal/weather-${name}`)).join('') },
  );
  const found = await find(spine, { query: 'weather forecast', limit: 50 });
  expect(found.tools.map(({ service }) => service).toSorted()).toEqual([
    'acme/weather',
    expect.any(String),
    expect.any(String),
  ]);
  expect(found.models).toHaveLength(2);
  // An empty query has the operator's first.
  expect((await find(spine, { query: '' })).tools[0]?.service).toBe('acme/weather');
  expect((await find(spine, { query: '' })).tools).toHaveLength(3);
  // Whoever names the service gets its tools.
  const its = (await find(spine, { query: 'weather', services: ['mal/many'] })).tools;
  expect(its).toHaveLength(10);
  for (const { description, inputSchema } of its) {
    expect(JSON.stringify([description, inputSchema]).length).toBeLessThan(1_100);
    expect(description).toMatch(/^The weather forecast\. z+… \(cut: /);
    expect(inputSchema).toEqual({ type: 'object' });
  }
  const [whole] = (await find(spine, { query: 'mal_many__t7' })).tools;
  expect(whole).toMatchObject({ ...MANY[7]!, name: 'mal_many__t7' });
});

test('nobody is told that tools have changed which no list shows', async () => {
  const spine = await startMarket({ 'zoo/one': [tool('look', 'Looks')] });
  const listen = (url: string) =>
    spine.send(
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'subscriptions/listen',
        params: {
          notifications: { toolsListChanged: true },
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      },
      null,
      { url, headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' } },
    );
  const [all, named] = [
    streamOf(await listen(spine.mcp)),
    streamOf(await listen(`${spine.mcp}?services=zoo/one,park/two`)),
  ];
  await Promise.all([all.next(), named.next()]);
  const other = await dialIn({
    router: spine.origin,
    services: toolToml({ name: 'park/two', url: await serve([tool('look', 'Looks')]), provider: 'Other' }),
  });
  expect(await named.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  await other.close();
  await spine.stop();
  expect((await all.rest()).filter(({ method }) => method !== undefined)).toEqual([]);
});

test('providers whom the operator lets in by name are listed and found like the operator', async () => {
  const spine = await startMarket({ 'acme2/many': MANY.slice(0, 5) }, { letIn: true });
  const { tools } = await ask(spine, 'tools/list');
  expect(
    tools!.map(({ description }) => (description as string).length).filter((length) => length > 2_000),
  ).toHaveLength(5);
  expect(namesIn(tools)).not.toContain('call_tool');
  expect((await find(spine, { query: 'weather' })).tools).toHaveLength(6);
});

test('however many strangers there are, half of a search is for what is not theirs', async () => {
  const strangers = Object.fromEntries(
    Array.from({ length: 12 }, (_, at) => [`mal/s${at}`, [tool('weather', 'weather'), tool('forecast', 'weather')]]),
  );
  const own = Array.from({ length: 8 }, (_, at) =>
    tool(`t${at}`, 'Tells you of any city how its weather is, and more'),
  );
  const offers = await Promise.all(
    Object.entries({ ...strangers, 'acme/all': own }).map(async ([service, tools]) =>
      toolOffer(await serve(tools), { service, provider: service }),
    ),
  );
  const { catalogue } = await startCatalogue(offers);
  const aggregate = createAggregate({
    catalogue,
    version: '1',
    bridged: NOBODY,
    isStranger: ({ service }) => service.startsWith('mal/'),
  });
  const search = async (args: object, caller: Parameters<typeof aggregate.scope>[0] = ANYONE) => {
    const result = JSON.parse(await aggregate.find(args, aggregate.scope(caller, null), true)) as {
      structuredContent: Found;
    };
    return result.structuredContent.tools.map(({ service }) => service);
  };
  const found = await search({ query: 'weather' });
  expect(found).toHaveLength(10);
  expect(found.filter((service) => service === 'acme/all')).toHaveLength(5);
  // The better match is first, whoever has it.
  expect(found[0]).toMatch(/^mal/);
  const named = await search({ query: 'weather' }, keyFor('*', 'mal/s1*'));
  expect(named.filter((service) => service.startsWith('mal/s1')).length).toBeGreaterThanOrEqual(5);
});

test('of a name that the operator shares, there is what its own server lists, and nothing else', async () => {
  const offers = [
    toolOffer(await serve([tool('ask', 'Asks')]), { service: 'acme/shared', provider: 'own', call: 0.002 }),
    toolOffer(await serve([tool('ask', 'z'.repeat(5_000)), tool('extra', 'More')]), {
      service: 'acme/shared',
      provider: 'mal',
    }),
  ];
  const isStranger = ({ provider }: { readonly provider: { readonly name: string } }) => provider.name === 'mal';
  const { catalogue } = await startCatalogue(offers, { isStranger });
  const aggregate = createAggregate({ catalogue, version: '1', bridged: NOBODY, isStranger });
  const scope = aggregate.scope(ANYONE, null);
  const { tools } = await resultOf(aggregate.list('tools/list', undefined, scope, true));
  expect(namesIn(tools)).toEqual(['acme_shared__ask']);
  expect((tools as { description: string }[])[0]!.description.length).toBeLessThan(1_100);
  expect(await aggregate.find({ query: 'more' }, scope, true)).not.toContain('acme_shared__extra');
  const message = request('tools/call', { name: 'acme_shared__extra' });
  expect(aggregate.resolve(message, scope)).toMatchObject({ kind: 'refused' });
});

import { CallToolResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/core';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { ANYONE, keyFor, namesIn, request, resultOf, startAggregate } from './aggregate-world.ts';

const tool = (name: string, description = '') => ({
  name,
  title: `The ${name}`,
  description,
  inputSchema: { type: 'object', 'x-kept': 1.0 },
});
const SERVICES = {
  'acme/many': { tools: Array.from({ length: 250 }, (_, i) => tool(`thing_${i}`, 'Does a thing')) },
  'acme/weather': { tools: [tool('forecast', 'Weather of the next days')] },
  'acme/secret': { tools: [tool('weather_control', 'Makes the weather')] },
};

interface Found {
  readonly tools: readonly Record<string, unknown>[];
  readonly searched: number;
}
const found = (result: string) => (JSON.parse(result) as { structuredContent: Found }).structuredContent;

test('above 200 tools, two of the gateway are listed in their stead; a selection with fewer is listed', async () => {
  const { aggregate } = await startAggregate(SERVICES);
  const list = (selection: string | null) =>
    resultOf(aggregate.list('tools/list', undefined, aggregate.scope(ANYONE, selection), true));
  expect(namesIn((await list(null))['tools'])).toEqual(['find_tools', 'call_tool']);
  expect(ListToolsResultSchema.safeParse(await list(null)).error).toBeUndefined();
  expect((await list(null))['tools']).toMatchObject([
    { _meta: { 'tollgate/price': { per_call: '0', currency: 'USDC' } } },
    {},
  ]);
  expect(namesIn((await list('acme/weather'))['tools'])).toEqual(['acme_weather__forecast']);
  expect(
    namesIn(
      (
        await resultOf(
          aggregate.list('tools/list', undefined, aggregate.scope(keyFor('acme/weather', 'acme/secret'), null), true),
        )
      )['tools'],
    ),
  ).toHaveLength(2);
});

test('find_tools gives what the words say with schema and price, of the services of the caller alone', async () => {
  const { aggregate } = await startAggregate(SERVICES);
  const scope = aggregate.scope(keyFor('acme/many', 'acme/weather'), null);
  const result = await aggregate.find({ query: 'weather tomorrow' }, scope, true);
  expect(CallToolResultSchema.safeParse(JSON.parse(result)).error).toBeUndefined();
  expect(found(result)).toEqual({
    tools: [
      {
        name: 'acme_weather__forecast',
        service: 'acme/weather',
        title: 'The forecast',
        description: 'Weather of the next days',
        inputSchema: { type: 'object', 'x-kept': 1 },
        price: { per_call: '0.001', currency: 'USDC' },
        definition: { sha256: expect.any(String), version: 1 },
      },
    ],
    searched: 251,
  });
  const { content } = JSON.parse(result) as { content: { text: string }[] };
  expect(JSON.parse(content[0]!.text)).toEqual(found(result));
  const { tools } = (await resultOf(aggregate.list('tools/list', undefined, aggregate.scope(ANYONE, null), true))) as {
    tools: { outputSchema: object }[];
  };
  expect(new Ajv().validate(tools[0]!.outputSchema, found(result))).toBe(true);

  // What it names can be called.
  expect(aggregate.resolve(request('tools/call', { name: 'acme_weather__forecast' }), scope)).toMatchObject({
    kind: 'service',
    service: 'acme/weather',
  });
  expect(found(await aggregate.find({ query: 'weather', services: ['acme/secret'] }, scope, true)).tools).toEqual([]);
  expect(found(await aggregate.find({ query: 'thing', limit: 3 }, scope, true)).tools).toHaveLength(3);
  expect(found(await aggregate.find({ query: 'thing' }, scope, true)).tools).toHaveLength(10);
  expect(
    namesIn(found(await aggregate.find({ query: ' ', limit: 2, services: ['acme/many'] }, scope, true)).tools),
  ).toEqual(['acme_many__thing_0', 'acme_many__thing_1']);
});

test('an answer is no longer than a model can read', async () => {
  const tools = Array.from({ length: 50 }, (_, i) => tool(`long_${i}`, `long ${'x'.repeat(30_000)}`));
  const { aggregate } = await startAggregate({ 'acme/long': { tools } });
  const scope = aggregate.scope(ANYONE, null);
  expect(found(await aggregate.find({ query: 'long', limit: 50 }, scope, true)).tools).toHaveLength(4);
});

test.each([
  [undefined],
  [{}],
  [{ query: 7 }],
  [{ query: 'x'.repeat(1_001) }],
  [{ query: 'x', limit: 0 }],
  [{ query: 'x', limit: 51 }],
  [{ query: 'x', limit: 1.5 }],
  [{ query: 'x', services: 'acme' }],
  [{ query: 'x', services: [1] }],
])('%j is an error of the tool, in words', async (args) => {
  const { aggregate } = await startAggregate({});
  const result = JSON.parse(await aggregate.find(args, aggregate.scope(ANYONE, null), false)) as Record<
    string,
    unknown
  >;
  expect(result).toEqual({
    content: [{ type: 'text', text: expect.stringContaining('must be') as string }],
    isError: true,
  });
});

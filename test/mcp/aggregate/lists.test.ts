import {
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListToolsResultSchema,
} from '@modelcontextprotocol/core';
import { expect, test } from 'vitest';
import { ANYONE, keyFor, namesIn, resultOf, startAggregate, type Lists } from './aggregate-world.ts';

const SERVICES = {
  'acme/files': {
    tools: [
      { name: 'write', inputSchema: { type: 'object' } },
      { name: 'read', inputSchema: { type: 'object' }, _meta: { ui: { resourceUri: 'ui://files/view' }, x: 1 } },
    ],
    resources: [
      { uri: 'file:///b', name: 'b' },
      { uri: 'ui://files/view', name: 'view' },
    ],
    resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 'any' }],
    prompts: [{ name: 'tidy up', description: 'Tidies' }],
  },
  'acme/web': {
    tools: [{ name: 'read', inputSchema: { type: 'object' } }],
    resources: [{ uri: 'http://x/', name: 'x' }],
  },
} as const;

test('the lists of all services are one, by names of the aggregate, as every client reads them', async () => {
  const { aggregate } = await startAggregate(SERVICES);
  const scope = aggregate.scope(ANYONE, null);
  const tools = await resultOf(aggregate.list('tools/list', undefined, scope, true));
  expect(namesIn(tools['tools'])).toEqual(['acme_files__read', 'acme_files__write', 'acme_web__read']);
  expect(tools).toMatchObject({ resultType: 'complete', cacheScope: 'private', ttlMs: expect.any(Number) });
  expect((tools['tools'] as unknown[])[0]).toEqual({
    name: 'acme_files__read',
    inputSchema: { type: 'object' },
    _meta: {
      ui: { resourceUri: 'ui://acme--files/files/view' },
      x: 1,
      'tollgate/price': { per_call: '0.001', currency: 'USDC' },
      'tollgate/definition': { sha256: expect.any(String), version: 1 },
    },
  });
  expect(tools).not.toHaveProperty('nextCursor');

  const resources = await resultOf(aggregate.list('resources/list', null, scope, true));
  expect(namesIn(resources['resources'], 'uri')).toEqual([
    'acme--files+file:///b',
    'ui://acme--files/files/view',
    'acme--web+http://x/',
  ]);
  const templates = await resultOf(aggregate.list('resources/templates/list', null, scope, true));
  expect(namesIn(templates['resourceTemplates'], 'uriTemplate')).toEqual(['acme--files+file:///{path}']);
  const prompts = await resultOf(aggregate.list('prompts/list', null, scope, true));
  expect(namesIn(prompts['prompts'])).toEqual([expect.stringMatching(/^acme_files__tidy_up_[0-9][0-9a-z]{12}$/)]);

  for (const [schema, result] of [
    [ListToolsResultSchema, tools],
    [ListResourcesResultSchema, resources],
    [ListResourceTemplatesResultSchema, templates],
    [ListPromptsResultSchema, prompts],
  ] as const)
    expect(schema.safeParse(result).error).toBeUndefined();

  // Legacy clients and bare requests know nothing of what the modern revision adds.
  expect(Object.keys(await resultOf(aggregate.list('tools/list', undefined, scope, false)))).toEqual(['tools']);
});

test('a caller sees the services that its key may use and its address selects, and no others', async () => {
  const { aggregate } = await startAggregate(SERVICES);
  const seen = async (caller: Parameters<typeof aggregate.scope>[0], selection: string | null) =>
    namesIn(
      (await resultOf(aggregate.list('tools/list', undefined, aggregate.scope(caller, selection), false)))['tools'],
    );
  expect(await seen(ANYONE, 'acme/web')).toEqual(['acme_web__read']);
  expect(await seen(ANYONE, ' acme/web , acme/none')).toEqual(['acme_web__read']);
  expect(await seen(ANYONE, '')).toEqual([]);
  expect(await seen(keyFor('acme/web', 'a-model'), null)).toEqual(['acme_web__read']);
  expect(await seen(keyFor('acme/web'), 'acme/files')).toEqual([]);
  expect(await seen(keyFor(), null)).toEqual([]);
});

const resources = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ uri: `r://${String(from + i).padStart(4, '0')}`, name: 'r' }));

test('a long list comes in pages, whose cursors stand whatever comes and goes meanwhile', async () => {
  const lists: Record<string, Lists> = {
    'acme/a': { resources: resources(450) },
    'acme/b': { resources: resources(3) },
  };
  const { aggregate, refreshed, catalog } = await startAggregate(lists);
  const scope = () => aggregate.scope(ANYONE, null);
  const page = (cursor?: string) => resultOf(aggregate.list('resources/list', cursor, scope(), true));
  const all: (string | undefined)[] = [];
  let cursor: string | undefined;
  const lengths: number[] = [];
  do {
    const one = await page(cursor);
    all.push(...namesIn(one['resources'], 'uri'));
    lengths.push((one['resources'] as unknown[]).length);
    cursor = one.nextCursor;
  } while (cursor !== undefined);
  expect(lengths).toEqual([200, 200, 53]);
  expect(new Set(all).size).toBe(453);

  // The element that the first page ended with goes, and others come before and behind it.
  const first = await page();
  lists['acme/a']!.resources = [...resources(190), ...resources(100, 300), { uri: 'r://0200', name: 'new' }];
  await refreshed('acme/a');
  const second = await page(first.nextCursor);
  expect(namesIn(second['resources'], 'uri').slice(0, 2)).toEqual(['acme--a+r://0200', 'acme--a+r://0300']);
  expect(second['resources']).toHaveLength(104);

  catalog.replace(
    'test',
    catalog.offers().filter(({ service }) => service === 'acme/b'),
  );
  expect(namesIn((await page(first.nextCursor))['resources'], 'uri')).toHaveLength(3);
});

test('a page has an end in bytes as well', async () => {
  const big = Array.from({ length: 40 }, (_, i) => ({ uri: `r://${i}`, name: 'r', description: 'x'.repeat(40_000) }));
  const { aggregate } = await startAggregate({ 'acme/a': { resources: big } });
  const answer = await aggregate.list('resources/list', undefined, aggregate.scope(ANYONE, null), true);
  expect(JSON.stringify(answer).length).toBeLessThan(1.2 * 1024 * 1024);
  expect((await resultOf(answer))['resources']).toHaveLength(26);
  expect((await resultOf(answer)).nextCursor).toEqual(expect.any(String));
});

test.each(['x', '!', 'bnVsbA', 'WzEsMl0', 'WyJhIl0', 'x'.repeat(20_000), 7, {}, []])(
  'the cursor %j is refused',
  async (cursor) => {
    const { aggregate } = await startAggregate({});
    expect(await aggregate.list('resources/list', cursor, aggregate.scope(ANYONE, null), true)).toMatchObject({
      error: { code: -32602 },
    });
  },
);

test.each(['', null])('the cursor %j is none', async (cursor) => {
  const { aggregate } = await startAggregate({ 'acme/a': { resources: [{ uri: 'r://1', name: 'r' }] } });
  const first = await resultOf(aggregate.list('resources/list', cursor, aggregate.scope(ANYONE, null), true));
  expect(namesIn(first['resources'], 'uri')).toEqual(['acme--a+r://1']);
});

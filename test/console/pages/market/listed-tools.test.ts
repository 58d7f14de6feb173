import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { toolServiceSchema } from '../../../../src/console/pages/market/market-schema.ts';
import { byPrice } from '../../../../src/server/catalog/price-view.ts';
import type { ListedTool, ToolListings } from '../../../../src/server/catalog/tool-definitions.ts';
import { offer, startMarket, variants } from './market-world.ts';

const DEFINITION = { sha256: 'ab', version: 1, changedAt: null, remoteRef: false };
const listed = (name: string, more: Partial<ListedTool> = {}): ListedTool => ({
  name,
  title: null,
  description: `About ${name}`,
  inputSchema: { type: 'object', of: name },
  size: 100,
  definition: DEFINITION,
  ...more,
});

/** What servers list, by the id of the provider; others are not known. */
function listingsOf(tools: Record<string, readonly ListedTool[]>): ToolListings & { changed(): void } {
  let version = 0;
  return {
    toolsOf: ({ provider }) => tools[provider.id] ?? null,
    definers: byPrice,
    leftOutOf: () => [],
    version: () => version,
    changed: () => void version++,
  };
}

const tool = (provider: string, service: string, call: number) =>
  offer({ provider, service, primitive: 'tool', pricing: { call } });

interface Entry {
  readonly id: string;
  readonly tools: readonly Record<string, unknown>[] | null;
  readonly tools_total: number;
}

test('GET /tools has the tools of each service with prices and definitions, and null where they are not known', async () => {
  const tools: Record<string, readonly ListedTool[]> = {
    'id-A': [listed('search', { title: 'Search' }), listed('deep')],
    'id-B': [
      listed('search', { definition: { sha256: 'cd', version: 3, changedAt: 1_700_000_000_000, remoteRef: true } }),
      listed('extra'),
    ],
  };
  const listings = listingsOf(tools);
  const { catalog, data } = await startMarket({ listings });
  const dear = tool('B', 'acme/search', 0.02);
  const cheap = tool('A', 'acme/search', 0.001);
  catalog.replace('config', [
    dear,
    { ...cheap, variants: variants(cheap, 'call', { deep: 0.5 }) },
    tool('C', 'acme/unknown', 0),
  ]);

  const entries = await data<readonly Entry[]>('/tools');
  const definition = { sha256: 'ab', version: 1 };
  expect(entries).toMatchObject([
    {
      id: 'acme/search',
      tools: [
        {
          name: 'deep',
          title: null,
          description: 'About deep',
          price: { per_call: '0.5', currency: 'USDC' },
          definition,
        },
        { name: 'extra', price: { per_call: '0.02', currency: 'USDC' } },
        {
          name: 'search',
          title: 'Search',
          price: { per_call: '0.001', per_call_max: '0.02', currency: 'USDC' },
          definition,
        },
      ],
      tools_total: 3,
    },
    { id: 'acme/unknown', tools: null, tools_total: 0 },
  ]);
  expect(JSON.stringify(entries)).not.toContain('input_schema');

  const [pinned] = await data<readonly Entry[]>('/tools?service=id-B:acme/search&schemas=true');
  expect(pinned!.tools).toEqual([
    {
      name: 'extra',
      title: null,
      description: 'About extra',
      price: { per_call: '0.02', currency: 'USDC' },
      definition,
      input_schema: { type: 'object', of: 'extra' },
    },
    {
      name: 'search',
      title: null,
      description: 'About search',
      price: { per_call: '0.02', currency: 'USDC' },
      definition: { sha256: 'cd', version: 3, changed_at: '2023-11-14T22:13:20.000Z', remote_ref: true },
      input_schema: { type: 'object', of: 'search' },
    },
  ]);
  const check = new Ajv({ allErrors: true, allowUnionTypes: true }).compile({
    type: 'array',
    items: toolServiceSchema,
  });
  for (const page of [entries, [pinned]]) {
    check(page);
    expect(check.errors).toBeNull();
  }

  tools['id-A'] = [listed('other')];
  listings.changed();
  expect(await data('/tools?service=acme/search')).toMatchObject([
    { tools: [{ name: 'extra' }, { name: 'other' }, { name: 'search' }] },
  ]);
});

test('lists of many tools are cut, and the page of one service has all of it', async () => {
  const many = Array.from({ length: 300 }, (_, i) => listed(`t${i}`, { description: 'x'.repeat(2_000) }));
  const { catalog, data } = await startMarket({ listings: listingsOf({ 'id-A': many }) });
  catalog.replace(
    'config',
    Array.from({ length: 60 }, (_, i) => tool('A', `acme/s${String(i).padStart(2, '0')}`, 0)),
  );
  const entries = await data<readonly Entry[]>('/tools');
  expect(entries.map(({ tools }) => tools!.length)).toEqual([
    ...Array<number>(50).fill(100),
    ...Array<number>(10).fill(0),
  ]);
  expect(entries.at(-1)!.tools_total).toBe(300);
  expect(entries[0]!.tools![0]!['description']).toHaveLength(500);
  const [one] = await data<readonly Entry[]>('/tools?service=acme/s59');
  expect(one!.tools).toHaveLength(300);
  expect(one!.tools![0]!['description']).toHaveLength(2_000);
});

test('a service that is not there is not found, and schemas are shown of one service alone', async () => {
  const { catalog, get } = await startMarket({ listings: listingsOf({}) });
  catalog.replace('config', [tool('A', 'acme/search', 0), offer({ provider: 'A', service: 'a-model' })]);
  for (const service of ['none', 'a-model', 'id-B:acme/search', '__proto__'])
    expect((await get(`/tools?service=${service}`)).status, service).toBe(404);
  expect((await get('/tools?schemas=true')).status).toBe(400);
  expect((await get('/tools?service=acme/search&schemas=true')).status).toBe(200);
  const page = await get('/tools?service=acme/search');
  expect((await get('/tools?service=acme/search', { 'if-none-match': page.headers.get('etag')! })).status).toBe(304);
});

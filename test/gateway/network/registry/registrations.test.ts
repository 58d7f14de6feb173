import { describe, expect, test } from 'vitest';
import type { Service } from '../../../../src/server/config/service.ts';
import { createCatalog } from '../../../../src/server/catalog/catalog.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { joined, listed, model, startNode } from './registry-world.ts';

const RICH: readonly Service[] = [
  { ...model('a/b'), rates: { prompt: 2n ** 60n, completion: 1n }, description: 'ä "quoted" \\ \u2028 line' },
  {
    primitive: 'tool',
    name: 'weather',
    displayName: 'Weather',
    providerName: 'Acme',
    description: '',
    rates: { call: 1n },
    variants: { forecast: { call: 10n ** 15n }, ['__proto__']: { call: 7n } },
    priceCap: 2n ** 60n,
  },
  {
    primitive: 'agent',
    name: 'planner',
    displayName: 'Planner',
    providerName: 'Acme',
    description: '',
    rates: { prompt: 0n },
    variants: {},
    priceCap: 5_000n,
    agent: { cardPath: '/.well-known/agent-card.json', rpcPath: '/a2a', chargedPer: 'task', nestedMax: 20_000n },
  },
  {
    primitive: 'video',
    name: 'film',
    displayName: 'Film',
    providerName: 'Acme',
    description: '',
    rates: { second: 5n },
    variants: { '720p+audio': { second: 6n } },
    media: {
      upstreamModel: 'f',
      supportedParams: ['seed'],
      aspectRatios: ['16:9'],
      formats: [],
      resolutions: ['720p'],
      durations: ['5s'],
    },
  },
];

describe.each(ENGINES)('%s: a registration', (engine) => {
  test('lists its services at once, and reads back exactly', async () => {
    const node = await startNode(await openTestDatabase(engine), { now: () => 1_000 });
    expect(await node.registry.register(await joined(node, 'p'), RICH)).toMatchObject({ revision: 1 });
    expect(listed(node)).toEqual(['p:a/b', 'p:film', 'p:planner', 'p:weather']);
    expect(await node.registry.registration('p')).toEqual({
      services: RICH.map((service) => ({ service, createdAt: 1_000 })),
      revision: 1,
      createdAt: 1_000,
      updatedAt: 1_000,
      connected: { since: 1_000, node: node.id },
    });
    expect(await node.registry.registration('q')).toBeNull();
  });

  test('replaces the one before; a service keeps the time of its first, by primitive and name', async () => {
    let time = 1_000;
    const node = await startNode(await openTestDatabase(engine), { now: () => time });
    const connection = await joined(node, 'p');
    await node.registry.register(connection, [model('a'), model('b')]);
    time = 2_000;
    expect(await node.registry.register(connection, [model('a', { price: 9 }), model('c')])).toMatchObject({
      revision: 2,
    });
    expect(node.catalog.offers().map(({ service, createdAt }) => [service, createdAt])).toEqual([
      ['a', 1_000],
      ['c', 2_000],
    ]);
    expect(await node.registry.registration('p')).toMatchObject({ createdAt: 1_000, updatedAt: 2_000 });
  });

  test('that says nothing new changes nothing', async () => {
    const node = await startNode(await openTestDatabase(engine));
    await node.registry.register(await joined(node, 'p'), RICH);
    const version = node.catalog.version();
    expect(await node.registry.register(await joined(node, 'p'), RICH)).toMatchObject({ revision: 1 });
    expect(node.catalog.version()).toBe(version);
  });

  test('that another version stored with its fields in another order changes nothing', async () => {
    const node = await startNode(await openTestDatabase(engine));
    await node.registry.register(await joined(node, 'p'), RICH);
    const reversed = RICH.map(
      (service) => Object.fromEntries(Object.entries(service).toReversed()) as unknown as Service,
    );
    expect(await node.registry.register(await joined(node, 'p'), reversed)).toMatchObject({ revision: 1 });
  });

  test('without services takes all away', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const connection = await joined(node, 'p');
    await node.registry.register(connection, [model('a')]);
    await node.registry.register(connection, []);
    expect(listed(node)).toEqual([]);
    expect(await node.registry.registration('p')).toMatchObject({ services: [], revision: 2 });
  });

  test('leaves the offers that calls hold as they are', async () => {
    const database = await openTestDatabase(engine);
    const catalog = createCatalog();
    const node = await startNode(database, { catalog });
    const connection = await joined(node, 'p');
    await node.registry.register(connection, RICH);
    const held = catalog.resolve('a/b', 'model').offers;
    await node.registry.register(connection, [model('a/b', { price: 3 })]);
    const [now] = catalog.resolve('a/b', 'model').offers;
    expect(held[0]!.price.rates).toEqual(RICH[0]!.rates);
    expect(now!.price.rates).toEqual({ prompt: 3_000_000n, completion: 3_000_000n });
  });
});

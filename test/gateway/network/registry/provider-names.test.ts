import { describe, expect, test } from 'vitest';
import type { ServiceConfig } from '../../../../src/server/config/service.ts';
import { createReservedNames } from '../../../../src/gateway/network/registry/service-names.ts';
import { RegistrationError } from '../../../../src/gateway/network/registry/document.ts';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, joined, listed, model, startNode, until } from './registry-world.ts';

/** The names of a gateway whose own file has a service of this provider. */
const ownNames = (providerName: string) =>
  createReservedNames([
    {
      service: model('own/model', { providerName }),
      target: { kind: 'http', baseUrl: 'http://127.0.0.1:9', apiKey: null },
    },
  ] as unknown as readonly ServiceConfig[]);

const reserved = { problems: [{ key: 'provider_name', wrong: expect.stringContaining('is reserved') }] };
const taken = { problems: [{ key: 'provider_name', wrong: 'is taken by another provider' }] };

describe.each(ENGINES)('%s: the name of a provider', (engine) => {
  test('belongs to whoever registered it first, whatever its case, also while that one is away', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const [first, second] = [await joined(node, 'p'), await joined(node, 'q')];
    await node.registry.register(first, [model('a', { providerName: 'Acme' })]);
    await node.registry.leave(first);
    const refused = node.registry.register(second, [model('a', { providerName: 'aCME' })]);
    await expect(refused).rejects.toBeInstanceOf(RegistrationError);
    await expect(refused).rejects.toMatchObject(taken);
    expect(await node.registry.registration('q')).toBeNull();
    expect(listed(node)).toEqual(['p:a']);
  });

  test('goes to one of many that race for it', async () => {
    const database = await openTestDatabase(engine);
    // The embedded database has one gateway.
    const nodes = await Promise.all(Array.from({ length: engine === 'postgres' ? 3 : 1 }, () => startNode(database)));
    const results = await Promise.allSettled(
      Array.from({ length: 30 }, async (_, index) => {
        const node = nodes[index % nodes.length]!;
        const connection = await joined(node, `p${index}`);
        return node.registry.register(connection, [model('a', { providerName: index % 2 ? 'Acme' : 'ACME' })]);
      }),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(taken);
    await until(() => nodes.every((node) => listed(node).length === 1));
  });

  test('may be changed by its owner, and is free then', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const [first, second] = [await joined(node, 'p'), await joined(node, 'q')];
    await node.registry.register(first, [model('a', { providerName: 'Old' })]);
    expect(await node.registry.register(first, [model('a', { providerName: 'New' })])).toMatchObject({ revision: 2 });
    expect(node.catalog.offers()[0]!.provider).toEqual({ id: 'p', name: 'New' });
    await node.registry.register(second, [model('b', { providerName: 'old' })]);
    expect(listed(node)).toEqual(['p:a', 'q:b']);
  });

  test('ends 30 days after its owner left, or with a ban, and its owner finds another one then', async () => {
    const database = await openTestDatabase(engine);
    const node = await startNode(database);
    const register = async (provider: string, providerName: string) =>
      node.registry.register(await joined(node, provider), [model(`${provider}/m`, { providerName })]);
    await register('p', 'Acme');
    await register('b', 'Brand');
    for (const provider of ['p', 'b']) await node.registry.leave(await joined(node, provider));
    const left = (days: number) =>
      database.query(adHoc(`UPDATE provider_connections SET left_at = ${Date.now() - days * 86_400_000}`));
    await left(29);
    await expect(register('q', 'ACME')).rejects.toMatchObject(taken);
    await left(31);
    await register('q', 'ACME');
    await expect(register('p', 'Acme')).rejects.toMatchObject(taken);
    await register('p', 'Other');
    await left(0);
    await expect(register('r', 'brand')).rejects.toMatchObject(taken);
    await node.registry.ban('b', 'squats');
    await register('r', 'brand');
    // Without services, one that has lost its name goes on without it.
    await node.registry.unban('b');
    await node.registry.register(await joined(node, 'b'), []);
    await expect(register('b', 'Brand')).rejects.toMatchObject(taken);
  });

  test('of the gateway’s own configuration is nobody’s', async () => {
    const node = await startNode(await openTestDatabase(engine), { reservedNames: ownNames('Demo Provider') });
    const refused = node.registry.register(await joined(node, 'p'), [model('a', { providerName: 'DEMO provider' })]);
    await expect(refused).rejects.toMatchObject(reserved);
  });

  test('that is another’s is told before a connection takes its provider’s place', async () => {
    const node = await startNode(await openTestDatabase(engine), { reservedNames: ownNames('Demo') });
    const standing = await joined(node, 'p');
    await node.registry.register(await joined(node, 'q'), [model('b', { providerName: 'Other' })]);
    await expect(node.registry.join(connectionOf('p'), 'OTHER')).rejects.toMatchObject(taken);
    await expect(node.registry.join(connectionOf('p'), 'demo')).rejects.toMatchObject(reserved);
    expect(node.registry.locate('p')).toEqual({ kind: 'here', connection: standing.id });
    expect(node.superseded).toEqual([]);
    // Its own and a free one do not stand in its way.
    await node.registry.register(standing, [model('a', { providerName: 'Mine' })]);
    for (const name of ['mine', 'Free']) await node.registry.join(connectionOf('p'), name);
    await until(() => node.superseded.length === 2);
  });
});

describe.each(ENGINES)('%s: the name of a service', (engine) => {
  test('is found by one that looks like it, also if its first part was open to all when it was registered', async () => {
    const database = await openTestDatabase(engine);
    const whileOpen = await startNode(database, { reservedNames: createReservedNames([], ['acme/*']) });
    await whileOpen.registry.register(await joined(whileOpen, 'p'), [model('acme/large', { providerName: 'First' })]);
    const node = await startNode(database, { reservedNames: createReservedNames() });
    const register = async (name: string) =>
      node.registry.register(await joined(node, 'q'), [model(name, { providerName: 'Second' })]);
    await expect(register('acme/1arge')).rejects.toMatchObject({
      problems: [{ wrong: '"acme/1arge" looks like "acme/large", which another provider offers' }],
    });
    await register('acme/large');
    await register('acme/other');
  });
});

import { describe, expect, test } from 'vitest';
import { ConnectionSuperseded } from '../../../../src/gateway/network/registry/registrations.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, joined, listed, model, startNode, until } from './registry-world.ts';

describe.each(ENGINES)('%s: a connection', (engine) => {
  test('is where its provider is, from join to leave', async () => {
    const { registry } = await startNode(await openTestDatabase(engine));
    expect(registry.locate('p')).toBeNull();
    const connection = await joined({ registry }, 'p');
    expect(registry.locate('p')).toEqual({ kind: 'here', connection: connection.id });
    const left = registry.leave(connection);
    expect(registry.locate('p')).toBeNull();
    await left;
    expect(registry.locate('p')).toBeNull();
  });

  test('is waited for, and only so long', async () => {
    const { registry } = await startNode(await openTestDatabase(engine));
    expect(await registry.waitFor('p', 10)).toBeNull();
    const waiting = [registry.waitFor('p', 10_000), registry.waitFor('p', 10_000)];
    const { id } = await joined({ registry }, 'p');
    const here = { kind: 'here', connection: id };
    expect(await Promise.all(waiting)).toEqual([here, here]);
    expect(await registry.waitFor('p', 0)).toEqual(here);
  });

  test('that is newer takes the place of the older, which is told once and can do nothing any more', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const { registry } = node;
    const older = await joined(node, 'p');
    await registry.register(older, [model('old')]);
    const newer = await joined(node, 'p');
    await until(() => node.superseded.length > 0);
    expect(registry.locate('p')).toEqual({ kind: 'here', connection: newer.id });
    await expect(registry.register(older, [model('late')])).rejects.toThrow(ConnectionSuperseded);
    await registry.leave(older);
    expect(registry.locate('p')).toEqual({ kind: 'here', connection: newer.id });
    expect(await registry.registration('p')).toMatchObject({ revision: 1, connected: { node: node.id } });
    expect(listed(node)).toEqual(['p:old']);
    expect(node.superseded).toEqual([older.id]);
  });

  test('that ended before its turn to join takes nobody’s place', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const standing = await joined(node, 'p');
    const short = connectionOf('p');
    const [joining] = await Promise.allSettled([node.registry.join(short), node.registry.leave(short)]);
    expect(joining).toMatchObject({ status: 'rejected', reason: expect.any(ConnectionSuperseded) as unknown });
    expect(node.registry.locate('p')).toEqual({ kind: 'here', connection: standing.id });
    expect(node.superseded).toEqual([]);
  });

  test('is told of as a return: the first, one after an absence, and one that takes over', async () => {
    const node = await startNode(await openTestDatabase(engine));
    const first = await joined(node, 'p');
    expect(node.returned).toEqual(['p']);
    await node.registry.leave(first);
    await joined(node, 'p');
    expect(node.returned).toEqual(['p', 'p']);
    await joined(node, 'p');
    expect(node.returned).toEqual(['p', 'p', 'p']);
  });
});

import { describe, expect, test } from 'vitest';
import { createBanStore } from '../../../../src/gateway/network/registry/providers.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, joined, listed, model, startNode, until } from './registry-world.ts';

describe.each(ENGINES)('%s: a ban', (engine) => {
  test('ends a provider at every gateway, outlives a restart, and can be lifted', async () => {
    const database = await openTestDatabase(engine);
    const here = await startNode(database);
    // The embedded database has one gateway.
    const there = engine === 'postgres' ? await startNode(database) : here;
    const heard: string[] = [];
    here.registry.onBanned((provider) => heard.push(provider));
    await here.registry.register(await joined(here, 'p'), [model('a')]);
    await here.registry.register(await joined(here, 'q'), [model('a', { providerName: 'Other' })]);
    await until(() => listed(there).length === 2);

    await there.registry.ban('p', 'spam');
    await until(() => listed(here).join() === 'q:a' && listed(there).join() === 'q:a');
    expect(heard).toEqual(['p']);
    expect(here.registry.banOf('p')).toMatchObject({ provider: 'p', reason: 'spam' });
    await expect(here.registry.join(connectionOf('p'))).rejects.toThrow('was banned');

    if (engine === 'postgres') expect(listed(await startNode(database))).toEqual(['q:a']);

    expect(await there.registry.unban('p')).toBe(true);
    expect(await there.registry.unban('p')).toBe(false);
    await until(() => here.registry.banOf('p') === null);
    await here.registry.register(await joined(here, 'p'), [model('a')]);
    await until(() => listed(there).join() === 'p:a,q:a');
    expect(here.errors).toEqual([]);
  });

  test('of a command on the database reaches a running gateway', async () => {
    const database = await openTestDatabase(engine);
    const node = await startNode(database);
    await node.registry.register(await joined(node, 'p'), [model('a')]);
    await createBanStore(database, { now: Date.now }).put('p', 'spam');
    // Any change makes the embedded gateway look; on PostgreSQL it polls.
    if (engine === 'sqlite') await node.registry.unban('nobody');
    await until(() => listed(node).length === 0);
  });
});

import { describe, expect, test } from 'vitest';
import type { Database } from '#store';
import { BOTH_ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, joined, listed, model, severable, startNode, until } from './registry-world.ts';

describe('a gateway that starts', () => {
  test('alone on the embedded database finds everything that was registered, and nobody present', async () => {
    const database = await openTestDatabase('sqlite');
    const before = await startNode(database, { url: null });
    await before.registry.register(await joined(before, 'p'), [model('a')]);
    // Killed: it says nothing more.
    const after = await startNode(database, { url: null });
    expect(after.registry.locate('p')).toBeNull();
    expect(listed(after)).toEqual(['p:a']);
    expect(await after.registry.registration('p')).toMatchObject({ revision: 1, connected: null });
    const again = await joined(after, 'p');
    expect(after.registry.locate('p')).toEqual({ kind: 'here', connection: again.id });
    expect(await after.registry.register(again, [model('a')])).toMatchObject({ revision: 1 });
  });

  test.each(BOTH_ENGINES)('on %s does not list what went away longer ago than the grace time', async (engine) => {
    const database = await openTestDatabase(engine);
    let time = 1_000_000;
    const before = await startNode(database, { now: () => time, graceMs: 60_000 });
    const connection = await joined(before, 'p');
    await before.registry.register(connection, [model('a')]);
    await before.registry.leave(connection);
    time += 50_000;
    expect(listed(await startNode(database, { now: () => time, graceMs: 60_000 }))).toEqual(['p:a']);
    time += 20_000;
    const late = await startNode(database, { now: () => time, graceMs: 60_000 });
    expect(listed(late)).toEqual([]);
    await joined(late, 'p');
    await until(() => listed(late).length === 1);
  });

  test.each(BOTH_ENGINES)('on %s remembers what is no longer listed before it was read', async (engine) => {
    const database = await openTestDatabase(engine);
    let time = 1_000_000;
    const before = await startNode(database, { now: () => time, graceMs: 60_000 });
    const connection = await joined(before, 'p');
    await before.registry.register(connection, [model('a')]);
    await before.registry.leave(connection);
    time += 59_990;
    // The grace time ends while the registrations are on their way.
    const slow: Database = {
      engine: database.engine,
      query: (...args) => database.query(...args),
      async batch(...args) {
        const found = await database.batch(...args);
        await new Promise((resolve) => setTimeout(resolve, 100));
        return found;
      },
      snapshot: (run, temporary) => database.snapshot(run, temporary),
      close: () => database.close(),
    };
    const late = await startNode(slow, { now: () => time, graceMs: 60_000 });
    expect(listed(late)).toEqual([]);
    expect(() => late.catalog.resolve('a', 'model')).toThrow('has disconnected');
    await joined(late, 'p');
    await until(() => listed(late).length === 1);
  });

  test('beside others sees who is connected to them', async () => {
    const database = await openTestDatabase('postgres');
    const one = await startNode(database);
    const connection = await joined(one, 'p');
    await one.registry.register(connection, [model('a')]);
    const two = await startNode(database);
    expect(two.registry.locate('p')).toEqual({
      kind: 'elsewhere',
      node: { id: one.id, url: `https://${one.id}.test:7000` },
      connection: connection.id,
    });
    expect(listed(two)).toEqual(['p:a']);
  });

  test('at the address of one that was killed ends what that one left behind, for all', async () => {
    const database = await openTestDatabase('postgres');
    const url = 'https://gateway.test:7000';
    const watcher = await startNode(database);
    const cut = severable(database);
    const killed = await startNode(cut, { url });
    const connection = await joined(killed, 'p');
    await until(() => watcher.registry.locate('p')?.connection === connection.id);
    cut.sever();
    const successor = await startNode(database, { url });
    expect(successor.registry.locate('p')).toBeNull();
    await until(() => watcher.registry.locate('p') === null, 1_000);
  });

  test('stops with its connections ended and its row gone, for all at once', async () => {
    const database = await openTestDatabase('postgres');
    const [one, two] = [await startNode(database), await startNode(database)];
    await joined(one, 'p');
    await until(() => two.registry.locate('p') !== null);
    const late = one.registry.join(connectionOf('late')).catch((error: unknown) => error);
    await one.registry.close();
    // Not ConnectionSuperseded, upon which a proxy would not dial again.
    expect(await late).toMatchObject({ name: 'Error' });
    await until(() => two.registry.locate('p') === null, 1_000);
    expect(await database.query({ name: 'test/nodes', text: 'SELECT id FROM nodes' })).toEqual([{ id: two.id }]);
    expect(await two.registry.registration('p')).toBeNull();
    await expect(one.registry.join(connectionOf('q'))).rejects.toThrow('stop');
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase, type OpenDatabase } from '#store';
import { startPostgres, type Postgres } from '../../../support/postgres.ts';
import { openTestDatabase } from '../../test-database.ts';
import { connectionOf, joined, listed, model, severable, startNode, until } from './registry-world.ts';

describe('while PostgreSQL is away', () => {
  let postgres: Postgres;
  const databases: OpenDatabase[] = [];
  const open = async () => {
    const database = await openDatabase({ url: postgres.url, dataDir: '' });
    databases.push(database);
    return database;
  };
  beforeAll(async () => {
    postgres = await startPostgres({ fsync: false });
  });
  afterAll(async () => {
    await Promise.all(databases.map((database) => database.close()));
    await postgres.stop();
  });

  test('gateways keep what they knew, say so once, and agree again when it is back, though it was away for longer than a lease', async () => {
    const options = { leaseMs: 400, pollMs: 20 };
    const [one, two] = [await startNode(await open(), options), await startNode(await open(), options)];
    const [stays, goes] = [await joined(one, 'stays'), await joined(one, 'goes')];
    await one.registry.register(stays, [model('a')]);
    await until(() => listed(two).length === 1 && two.registry.locate('goes') !== null);

    await postgres.kill9();
    await until(() => one.errors.length > 0 && two.errors.length > 0);
    await one.registry.leave(goes);
    await expect(one.registry.join(connectionOf('new'))).rejects.toMatchObject({ unavailable: true });
    await expect(one.registry.register(stays, [model('b')])).rejects.toMatchObject({ unavailable: true });
    // Longer than the lease.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(one.registry.locate('stays')).toEqual({ kind: 'here', connection: stays.id });
    expect(two.registry.locate('stays')).toMatchObject({ kind: 'elsewhere', connection: stays.id });
    expect(one.registry.locate('goes')).toBeNull();
    expect(one.registry.locate('new')).toBeNull();
    expect(listed(two)).toEqual(['stays:a']);

    await postgres.restart();
    const returned = two.returned.length;
    await until(() => two.registry.locate('goes') === null, 5_000);
    await until(() => one.restored() === 1 && two.restored() === 1);
    expect(two.registry.locate('stays')).toMatchObject({ kind: 'elsewhere', connection: stays.id });
    // It was never taken as gone.
    expect(two.returned).toHaveLength(returned);
    const joinedAgain = await joined(one, 'new');
    await until(() => two.registry.locate('new')?.connection === joinedAgain.id);
    expect([one.errors.length, two.errors.length]).toEqual([1, 1]);
    expect(one.superseded).toEqual([]);
  });
});

describe('while the embedded database fails', () => {
  test('what is open stands, and what ended meanwhile is ended when it works again', async () => {
    const database = severable(await openTestDatabase('sqlite'));
    const node = await startNode(database, { url: null });
    const [stays, goes] = [await joined(node, 'stays'), await joined(node, 'goes')];
    database.sever();
    await node.registry.leave(goes);
    await expect(node.registry.join(connectionOf('new'))).rejects.toMatchObject({ unavailable: true });
    expect(node.registry.locate('stays')).toEqual({ kind: 'here', connection: stays.id });
    expect(node.errors).toHaveLength(1);
    database.heal();
    await until(() => node.restored() === 1);
    const open = { name: 'test/open', text: 'SELECT provider FROM provider_connections WHERE left_at IS NULL' };
    await until(async () => (await database.query(open)).length === 1);
    expect(await database.query(open)).toEqual([{ provider: 'stays' }]);
  });
});

describe('a gateway that cannot reach its database at its start', () => {
  test('says so and leaves nothing running', async () => {
    const database = severable(await openTestDatabase('sqlite'));
    database.sever();
    await expect(startNode(database)).rejects.toMatchObject({ unavailable: true });
  });
});

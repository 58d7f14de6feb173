import { describe, expect, test } from 'vitest';
import { openTestDatabase } from '../../test-database.ts';
import { joined, listed, model, severable, startNode, until } from './registry-world.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

const LEASE = { leaseMs: 600, pollMs: 20 };
/** For what happens before a lease is over: no machine is too slow for it, and nothing waits for its end. */
const LONG_LEASE = { leaseMs: 20_000, pollMs: 20 };
const BEAT = { name: 'test/beat', text: 'SELECT beat FROM nodes WHERE id = $1' };
const NODES = { name: 'test/nodes', text: 'SELECT id FROM nodes ORDER BY id' };

describe('a gateway that says nothing any more', () => {
  test('counts as gone with its connections when its lease is over, and not before', async () => {
    const database = await openTestDatabase('postgres');
    const cut = severable(database);
    const [killed, one, two] = [
      await startNode(cut, LEASE),
      await startNode(database, LEASE),
      await startNode(database, LEASE),
    ];
    const connection = await joined(killed, 'p');
    await killed.registry.register(connection, [model('a')]);
    await until(() => listed(one).length === 1 && listed(two).length === 1);
    // Right after a sign of life, from which the others count.
    const beat = async () => (await database.query(BEAT, [killed.id]))[0]!['beat'];
    const before = await beat();
    await until(async () => (await beat()) !== before);
    cut.sever();
    const took = await until(() => one.registry.locate('p') === null && two.registry.locate('p') === null);
    expect(took).toBeGreaterThan(LEASE.leaseMs - LEASE.leaseMs / 3 - 100);
    expect(took).toBeLessThan(atThisLoad(LEASE.leaseMs + 1_000));
    // In its grace time.
    expect(listed(one)).toEqual(['p:a']);
    await until(async () => (await database.query(NODES)).length === 2);
    expect(await one.registry.registration('p')).toMatchObject({ connected: null });
  });

  test('and comes back counts again with the connections that it kept', async () => {
    const database = await openTestDatabase('postgres');
    const cut = severable(database);
    const [parted, other] = [await startNode(cut, LEASE), await startNode(database, LEASE)];
    const connection = await joined(parted, 'p');
    await until(() => other.registry.locate('p') !== null);
    cut.sever();
    await until(async () => (await database.query(NODES)).length === 1);
    await until(() => other.registry.locate('p') === null);
    expect(parted.registry.locate('p')).toEqual({ kind: 'here', connection: connection.id });
    cut.heal();
    await until(() => other.registry.locate('p')?.connection === connection.id);
    expect(parted.registry.locate('p')).toEqual({ kind: 'here', connection: connection.id });
    expect(await parted.registry.register(connection, [model('a')])).toMatchObject({ revision: 1 });
    // The other gateway sees the connection as soon as it is written, before the next poll of this one has ended.
    await until(() => parted.restored() > 0);
    expect([parted.errors.length, parted.restored()]).toEqual([1, 1]);
    expect(parted.superseded).toEqual([]);
  });

  test('and comes back has lost what moved to another, and ends what ended meanwhile', async () => {
    const database = await openTestDatabase('postgres');
    const cut = severable(database);
    const [parted, other] = [await startNode(cut, LONG_LEASE), await startNode(database, LONG_LEASE)];
    const [moves, ends] = [await joined(parted, 'moves'), await joined(parted, 'ends')];
    await until(() => other.registry.locate('moves') !== null && other.registry.locate('ends') !== null);
    cut.sever();
    await parted.registry.leave(ends);
    const moved = await joined(other, 'moves');
    // Before the lease is over: nobody but the one that left it knows that the connection ended.
    expect(other.registry.locate('ends')).not.toBeNull();
    cut.heal();
    await until(() => other.registry.locate('ends') === null, LONG_LEASE.leaseMs / 2);
    await until(() => parted.superseded.length > 0);
    expect(parted.superseded).toEqual([moves.id]);
    expect(parted.registry.locate('moves')).toMatchObject({ kind: 'elsewhere', connection: moved.id });
    expect(other.registry.locate('moves')).toEqual({ kind: 'here', connection: moved.id });
  });

  test('a join whose answer was lost does not stand without its connection', async () => {
    const database = await openTestDatabase('postgres');
    const cut = severable(database);
    const [parted, other] = [await startNode(cut, LONG_LEASE), await startNode(database, LONG_LEASE)];
    const joining = joined(parted, 'p').catch((error: unknown) => error);
    // Once it is on its way.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    cut.sever();
    expect(await joining).toMatchObject({ unavailable: true });
    await until(() => other.registry.locate('p') !== null);
    cut.heal();
    await until(() => other.registry.locate('p') === null, LONG_LEASE.leaseMs / 2);
    expect(parted.registry.locate('p')).toBeNull();
  });
});

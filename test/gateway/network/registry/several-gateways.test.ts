import { describe, expect, test } from 'vitest';
import type { OpenDatabase } from '#store';
import { openTestDatabase } from '../../test-database.ts';
import {
  connectionOf,
  joined,
  listed,
  model,
  startNode,
  until,
  type NodeOptions,
  type TestNode,
} from './registry-world.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';

const gateways = (database: OpenDatabase, count: number, options?: NodeOptions): Promise<TestNode[]> =>
  Promise.all(Array.from({ length: count }, () => startNode(database, options)));

describe('gateways on one database', () => {
  test('know of a connection, of what it registers and of its end within half a second', async () => {
    // At the interval of production.
    const [one, two, three] = (await gateways(await openTestDatabase('postgres'), 3, { pollMs: 200 })) as [
      TestNode,
      TestNode,
      TestNode,
    ];
    const others = [two, three];
    const connection = await joined(one, 'p');
    expect(
      await until(() => others.every(({ registry }) => registry.locate('p')?.connection === connection.id)),
    ).toBeLessThan(atThisLoad(500));
    expect(two.registry.locate('p')).toMatchObject({ kind: 'elsewhere', node: { id: one.id } });
    expect(two.returned).toEqual(['p']);
    await one.registry.register(connection, [model('a')]);
    expect(await until(() => others.every((node) => listed(node)[0] === 'p:a'))).toBeLessThan(atThisLoad(500));
    await one.registry.register(connection, [model('a', { price: 5 })]);
    const priced = ({ catalog }: TestNode) => catalog.offers()[0]!.price.rates.prompt === 5_000_000n;
    expect(await until(() => others.every(priced))).toBeLessThan(atThisLoad(500));
    const back = two.registry.waitFor('p', 10_000);
    expect(await back).not.toBeNull();
    await one.registry.leave(connection);
    expect(await until(() => others.every(({ registry }) => registry.locate('p') === null))).toBeLessThan(
      atThisLoad(500),
    );
  });

  test('all drop the offers of a provider that stays away longer than the grace time', async () => {
    const database = await openTestDatabase('postgres');
    const [one, two] = (await gateways(database, 2, { graceMs: 200 })) as [TestNode, TestNode];
    // One whose grace time no machine is too slow for.
    const patient = await startNode(database);
    const connection = await joined(one, 'p');
    await one.registry.register(connection, [model('a')]);
    await until(() => [two, patient].every((node) => listed(node).length === 1));
    const left = performance.now();
    await one.registry.leave(connection);
    await until(() => listed(one).length === 0 && listed(two).length === 0);
    expect(performance.now() - left).toBeGreaterThan(150);
    await until(() => patient.registry.locate('p') === null);
    expect(listed(patient)).toEqual(['p:a']);
  });

  test('wake whoever waits for a provider that connects elsewhere', async () => {
    const [one, two] = (await gateways(await openTestDatabase('postgres'), 2)) as [TestNode, TestNode];
    const waiting = two.registry.waitFor('p', 10_000);
    const { id } = await joined(one, 'p');
    expect(await waiting).toMatchObject({ kind: 'elsewhere', connection: id });
  });

  test('follow a provider that moves: the old gateway is told once, and can neither register nor end the new connection', async () => {
    const [one, two] = (await gateways(await openTestDatabase('postgres'), 2)) as [TestNode, TestNode];
    const older = await joined(one, 'p');
    const newer = await joined(two, 'p');
    // Before and after the old gateway has heard of it.
    await expect(one.registry.register(older, [model('late')])).rejects.toMatchObject({ name: 'ConnectionSuperseded' });
    await until(() => one.superseded.length === 1);
    await expect(one.registry.register(older, [model('late')])).rejects.toMatchObject({ name: 'ConnectionSuperseded' });
    await one.registry.leave(older);
    expect(one.registry.locate('p')).toMatchObject({ kind: 'elsewhere', connection: newer.id });
    expect(await two.registry.register(newer, [model('a')])).toMatchObject({ revision: 1 });
    await until(() => listed(one)[0] === 'p:a');
    expect(one.superseded).toEqual([older.id]);
    expect(two.superseded).toEqual([]);
  });

  test('refuse what an old connection registers, also when the new one joins in the very moment', async () => {
    const database = await openTestDatabase('postgres');
    const two = await startNode(database);
    let between = async () => {};
    const one = await startNode({
      ...database,
      batch: async (steps) => {
        if (steps.some(({ statement }) => statement.name.endsWith('.putRegistration'))) await between();
        return database.batch(steps);
      },
    });
    const older = await joined(one, 'p');
    between = async () => {
      between = async () => {};
      await joined(two, 'p');
    };
    await expect(one.registry.register(older, [model('late')])).rejects.toMatchObject({ name: 'ConnectionSuperseded' });
    expect(await two.registry.registration('p')).toBeNull();
  });

  test('an old connection that ends before it is told takes nothing of the new one', async () => {
    const database = await openTestDatabase('postgres');
    const [one, two] = (await gateways(database, 2, { pollMs: 60_000, leaseMs: 600_000 })) as [TestNode, TestNode];
    const older = await joined(one, 'p');
    const newer = await joined(two, 'p');
    await one.registry.leave(older);
    const third = await startNode(database);
    expect(third.registry.locate('p')).toMatchObject({ kind: 'elsewhere', connection: newer.id });
  });

  // A test for each round, so that its database and its gateways are gone before the next.
  const rounds = Array.from({ length: DEEP ? 100 : 3 }, (_, index) => index + 1);
  const RACE = 'of 100 connections that race to join, one stands everywhere and every other is told once';
  test.each(rounds)(`${RACE}: round %i`, async () => {
    const nodes = await gateways(await openTestDatabase('postgres'), 3);
    const connections = Array.from({ length: 100 }, (_, index) => ({
      node: nodes[index % 3]!,
      connection: connectionOf('p'),
    }));
    await Promise.all(connections.map(({ node, connection }) => node.registry.join(connection)));
    const told = () => nodes.flatMap(({ superseded }) => superseded);
    await until(() => told().length >= 99);
    const [winner] = connections.filter(({ connection }) => !told().includes(connection.id));
    await until(() => nodes.every(({ registry }) => registry.locate('p')?.connection === winner!.connection.id));
    for (const node of nodes)
      expect(node.registry.locate('p')!.kind).toBe(node === winner!.node ? 'here' : 'elsewhere');
    // What is told late would be told by the next news.
    await joined(nodes[0]!, 'q');
    await until(() => nodes.every(({ registry }) => registry.locate('q') !== null));
    expect(told()).toHaveLength(99);
    expect(new Set(told()).size).toBe(99);
    await winner!.node.registry.register(winner!.connection, [model('a')]);
  });
});

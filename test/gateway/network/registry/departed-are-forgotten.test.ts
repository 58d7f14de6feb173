import { describe, expect, test } from 'vitest';
import type { Database } from '#store';
import { adHoc } from '../../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase } from '../../test-database.ts';
import { connectionOf, listed, model, startNode, until, type TestNode } from './registry-world.ts';

// A wallet costs nothing, so what a provider leaves behind has an end and a bound.

const DAY = 86_400_000;
const ROWS = {
  connections: adHoc('SELECT provider FROM provider_connections ORDER BY provider'),
  registrations: adHoc('SELECT provider FROM provider_registrations ORDER BY provider'),
  names: adHoc('SELECT DISTINCT provider FROM service_names ORDER BY provider'),
  pins: adHoc('SELECT provider FROM tool_pins ORDER BY provider'),
};
const PIN = adHoc(
  "INSERT INTO tool_pins (provider, service, tool, sha256, version, first_seen) VALUES ($1, 'a', 'b', 'c', 1, 1) ON CONFLICT DO NOTHING",
);
const PRICE = adHoc("INSERT INTO prices (id, provider, service, rates, created_at) VALUES ($1, $1, 'a/b', '{}', 1)");
const EARNED = adHoc("INSERT INTO accounts (id, available, locked) VALUES ('earnings:' || $1, 0, 0)");

async function rowsOf(database: Database) {
  const entries = Object.entries(ROWS).map(async ([table, sql]) => [
    table,
    (await database.query(sql)).map(({ provider }) => provider).join(' '),
  ]);
  return Object.fromEntries(await Promise.all(entries)) as Readonly<Record<keyof typeof ROWS, string>>;
}

const all = (providers: string) => ({
  connections: providers,
  registrations: providers,
  names: providers,
  pins: providers,
});

/** A provider that offered `count` services, and left unless `stays`. */
async function came(
  { registry }: Pick<TestNode, 'registry'>,
  database: Database,
  id: string,
  { network = 'g0a0000', count = 1, stays = false } = {},
) {
  const connection = connectionOf(id, network);
  await registry.join(connection);
  await registry.register(
    connection,
    Array.from({ length: count }, (_, at) => model(`${id}/m${at}`, { providerName: `Seller ${id}` })),
  );
  await database.query(PIN, [id]);
  if (!stays) await registry.leave(connection);
  return connection;
}

describe.each(ENGINES)('%s', (engine) => {
  test('after 30 days away a provider is forgotten; one that was paid keeps its name for the records', async () => {
    const database = await openTestDatabase(engine);
    let time = Date.now();
    const node = await startNode(database, { now: () => time, graceMs: 0 });
    await came(node, database, 'paid');
    await came(node, database, 'never');
    await came(node, database, 'stays', { stays: true });
    await database.query(EARNED, ['paid']);
    time += 29 * DAY;
    await came(node, database, 'young');
    expect(await node.registry.sweep(100)).toBe(0);
    expect(await rowsOf(database)).toEqual(all('never paid stays young'));

    time += 2 * DAY;
    expect(await node.registry.sweep(100)).toBe(2);
    expect(await rowsOf(database)).toEqual({
      ...all('stays young'),
      connections: 'paid stays young',
      registrations: 'paid stays young',
    });
    expect(await node.registry.registration('paid')).toMatchObject({ services: [] });
    // It has nothing more to give.
    time += DAY;
    expect(await node.registry.sweep(100)).toBe(0);

    // Both come back as others do.
    for (const id of ['paid', 'never']) await came(node, database, id, { stays: true });
    expect(listed(node).toSorted()).toEqual(['never:never/m0', 'paid:paid/m0', 'stays:stays/m0']);
    expect(node.errors).toEqual([]);
  });

  test('above the bound, the network with the most makes way: what was never paid first, the longest away first', async () => {
    const database = await openTestDatabase(engine);
    let time = Date.now();
    const departed = { keptMax: 25_000, awayLeastMs: 1_000 };
    const node = await startNode(database, { now: () => time, graceMs: 0, departed });
    await came(node, database, 'honest', { network: 'g0b0000' });
    for (const id of ['a1', 'a2', 'a3', 'a4']) {
      await came(node, database, id, { count: 40 });
      time += 10;
    }
    await database.query(EARNED, ['a1']);
    // Their gateway may have failed to answer for a moment only.
    expect(await node.registry.sweep(100)).toBe(0);
    time += 120_000;
    await came(node, database, 'a5', { count: 40 });
    const swept = await node.registry.sweep(100);
    expect(swept).toBeGreaterThan(0);
    const left = (await rowsOf(database)).registrations.split(' ');
    expect(left).toContain('honest');
    expect(left).toContain('a1');
    expect(left).toContain('a5');
    expect(left.filter((id) => ['a2', 'a3', 'a4'].includes(id))).toEqual(['a2', 'a3', 'a4'].slice(swept));
  });

  test('a stranger that has left is forgotten at once, unless it was called or has come back', async () => {
    const database = await openTestDatabase(engine);
    const node = await startNode(database, { graceMs: 0 });
    for (const id of ['never', 'called']) await came(node, database, id);
    await came(node, database, 'stays', { stays: true });
    await database.query(PRICE, ['called']);
    for (const id of ['never', 'called', 'stays', 'nobody']) await node.registry.forget(id);
    expect(await rowsOf(database)).toEqual(all('called stays'));
    // Its names are free.
    const other = connectionOf('other');
    await node.registry.join(other);
    await node.registry.register(other, [model('never/m1', { providerName: 'Seller never' })]);
    expect(listed(node).toSorted()).toEqual(['other:never/m1', 'stays:stays/m0']);
  });

  test('whoever comes back meanwhile keeps all', async () => {
    const database = await openTestDatabase(engine);
    let time = Date.now();
    const slow: Database = Object.assign(Object.create(database) as Database, {
      async query(...args: Parameters<Database['query']>) {
        const rows = await database.query(...args);
        if (rows.some((row) => 'earned' in row)) await came(node, database, 'back', { stays: true });
        return rows;
      },
    });
    const node = await startNode(slow, { now: () => time, graceMs: 0 });
    await came(node, database, 'back');
    time += 31 * DAY;
    expect(await node.registry.sweep(100)).toBe(1);
    expect(await rowsOf(database)).toEqual(all('back'));
    await until(() => listed(node).length === 1);
  });
});

import { afterEach, describe, expect, inject, test } from 'vitest';
import { openDatabase, type OpenDatabase } from '#store';
import { loadMigrations } from '../../../src/foundation/store/migrations.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openEngine } from '../../support/engines.ts';
import { bareDatabase } from '../../support/fresh-database.ts';

const APPLIED = adHoc('SELECT name FROM migrations ORDER BY name');
const names = loadMigrations().map(({ name }) => name);
/** As a database has them: the last one renames the first, for old versions. */
const appliedNames = names.map((name) => (name === '0001_ledger' ? '0001_ledger (renamed)' : name));

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

test('each migration has a number of its own', () => {
  expect(names[0]).toBe('0001_ledger');
  expect(new Set(names.map((name) => name.slice(0, 4))).size).toBe(names.length);
});

describe.each(ENGINES)('%s', (name) => {
  const severalAtOnce = name === 'postgres' ? [8] : [];
  test.each(severalAtOnce)(
    '%i gateways that start at once migrate one after the other, each migration once',
    async (length) => {
      const fresh = await bareDatabase(inject('postgresUrl'));
      disposals.push(fresh.drop);
      const databases: OpenDatabase[] = await Promise.all(
        Array.from({ length }, () => openDatabase({ url: fresh.url, dataDir: '' })),
      );
      disposals.push(async () => void (await Promise.all(databases.map((database) => database.close()))));
      expect((await databases[0]!.query(APPLIED)).map((row) => row.name)).toEqual(appliedNames);
    },
  );

  test('opening again changes nothing', async () => {
    const engine = await openEngine(name);
    disposals.push(engine.dispose);
    const first = await engine.database.query(APPLIED);
    await engine.database.query(adHoc("INSERT INTO accounts (id, available, locked) VALUES ('escrow:a', 5, 0)"));
    await engine.database.close();
    const again = await engine.again();
    expect(await again.query(APPLIED)).toEqual(first);
    expect(first.map((row) => row.name)).toEqual(appliedNames);
    expect(await again.query(adHoc('SELECT available FROM accounts'))).toEqual([{ available: 5n }]);
  });

  test('the database itself refuses what must never be', async () => {
    const engine = await openEngine(name);
    disposals.push(engine.dispose);
    const put = (id: string, available: number, locked: number) =>
      engine.database.query(adHoc('INSERT INTO accounts (id, available, locked) VALUES ($1, $2, $3)'), [
        id,
        available,
        locked,
      ]);
    await expect(put('escrow:a', -1, 0)).rejects.toMatchObject({ code: 'check_violation' });
    await expect(put('escrow:a', 0, -1)).rejects.toMatchObject({ code: 'check_violation' });
    await put('treasury:x', -1, 0);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CROWDED } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

const PUT = adHoc('INSERT INTO things (id, amount, note) VALUES ($1, $2, $3)');
const FIND = adHoc('SELECT id, amount, note FROM things WHERE id = $1');
const ALL = adHoc('SELECT id, amount, note FROM things ORDER BY id');

/** What both engines do alike. */
describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  beforeAll(async () => {
    engine = await openEngine(name);
    await engine.database.query(
      adHoc('CREATE TABLE things (id TEXT PRIMARY KEY, amount BIGINT NOT NULL CHECK (amount >= 0), note TEXT)'),
    );
    await engine.database.query(adHoc('CREATE TABLE parts (thing TEXT NOT NULL REFERENCES things (id))'));
  });
  afterAll(() => engine.dispose());
  beforeEach(async () => {
    await engine.database.query(adHoc('DELETE FROM parts'));
    await engine.database.query(adHoc('DELETE FROM things'));
  });

  test('integers come back as bigint, exactly, texts as they were, null as null', async () => {
    const note = 'ä 😀 \' " \\ {} $1 ?';
    await engine.database.query(PUT, ['a', 2n ** 63n - 1n, note]);
    await engine.database.query(PUT, ['b', 7, null]);
    expect(await engine.database.query(FIND, ['a'])).toEqual([{ id: 'a', amount: 2n ** 63n - 1n, note }]);
    expect(await engine.database.query(FIND, ['b'])).toEqual([{ id: 'b', amount: 7n, note: null }]);
    expect(
      await engine.database.query(adHoc('SELECT COUNT(*) AS count, CAST(SUM(1) AS BIGINT) AS sum FROM things')),
    ).toEqual([{ count: 2n, sum: 2n }]);
    expect(await engine.database.query(FIND, ['c'])).toEqual([]);
  });

  test('a parameter may be used twice and out of order', async () => {
    const statement = adHoc('SELECT CAST($2 AS TEXT) AS second, CAST($1 AS TEXT) AS first, CAST($2 AS TEXT) AS again');
    expect(await engine.database.query(statement, ['one', 'two'])).toEqual([
      { second: 'two', first: 'one', again: 'two' },
    ]);
  });

  test('a batch returns what each step returns', async () => {
    const returning = adHoc('UPDATE things SET amount = amount + 1 WHERE id = $1 RETURNING amount');
    const rows = await engine.database.batch([
      { statement: PUT, params: ['a', 1n, null] },
      { statement: returning, params: ['a'] },
      { statement: returning, params: ['unknown'] },
    ]);
    expect(rows).toEqual([[], [{ amount: 2n }], []]);
  });

  test('a batch happens as a whole or not at all', async () => {
    const steps = ['a', 'b', 'a'].map((id) => ({ statement: PUT, params: [id, 1n, null] }));
    await expect(engine.database.batch(steps)).rejects.toMatchObject({
      name: 'DatabaseError',
      code: 'unique_violation',
      unavailable: false,
    });
    expect(await engine.database.query(ALL)).toEqual([]);
    await engine.database.batch(steps.slice(0, 2));
    expect(await engine.database.query(ALL)).toHaveLength(2);
  });

  test('broken constraints have the same codes', async () => {
    await engine.database.query(PUT, ['a', 1n, null]);
    await expect(engine.database.query(PUT, ['a', 1n, null])).rejects.toMatchObject({ code: 'unique_violation' });
    await expect(engine.database.query(PUT, ['b', -1n, null])).rejects.toMatchObject({ code: 'check_violation' });
    await expect(engine.database.query(PUT, ['b', null, null])).rejects.toMatchObject({ code: 'not_null_violation' });
    await expect(engine.database.query(adHoc('INSERT INTO parts (thing) VALUES ($1)'), ['x'])).rejects.toMatchObject({
      code: 'foreign_key_violation',
    });
    await expect(engine.database.query(adHoc('SELECT nonsense FROM things'))).rejects.toMatchObject({
      name: 'DatabaseError',
      unavailable: false,
    });
  });

  test('concurrent queries are each answered with their own rows', async () => {
    await engine.database.batch(
      Array.from({ length: 100 }, (_, index) => ({ statement: PUT, params: [`id-${index}`, BigInt(index), null] })),
    );
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) => engine.database.query(FIND, [`id-${index}`])),
    );
    expect(answers.map((rows) => rows[0]?.amount)).toEqual(Array.from({ length: 100 }, (_, index) => BigInt(index)));
  });

  test('a snapshot sees one moment while others write, and does not stop them', async () => {
    await engine.database.query(PUT, ['a', 1n, null]);
    const seen = await engine.database.snapshot(null, async (query) => {
      const first = await query(ALL);
      await engine.database.query(PUT, ['b', 2n, null]);
      return [first.length, (await query(ALL)).length];
    });
    expect(seen).toEqual([1, 1]);
    expect(await engine.database.query(ALL)).toHaveLength(2);
  });

  test('a party that reads many snapshots gets half of them at once, and leaves the next party its turn', async () => {
    const running: { readonly party: string | null; readonly end: () => void }[] = [];
    const read = (party: string | null) =>
      engine.database.snapshot(party, () => new Promise<void>((end) => running.push({ party, end })));
    const parties = () => running.map(({ party }) => String(party)).toSorted();
    const greedy = Array.from({ length: 40 }, () => read('greedy'));
    const refused = await Promise.allSettled(greedy.slice(32));
    expect(refused.map((each) => (each as PromiseRejectedResult).reason as unknown)).toEqual(
      Array(8).fill(expect.objectContaining({ name: 'DatabaseError', code: CROWDED })),
    );
    const others = [read('patient'), read(null)];
    await expect.poll(parties, { timeout: 30_000 }).toEqual(['greedy', 'greedy', 'null', 'patient']);
    const late = read('late');
    for (const { end } of running.splice(0)) end();
    await expect.poll(parties, { timeout: 30_000 }).toEqual(['greedy', 'greedy', 'late']);
    const all = Promise.all([...greedy.slice(0, 32), ...others, late]);
    const ending = setInterval(() => running.splice(0).forEach(({ end }) => end()), 1);
    await all;
    // Its places are free again.
    await read('greedy');
    clearInterval(ending);
  });

  test('a snapshot cannot write', async () => {
    await expect(engine.database.snapshot(null, (query) => query(PUT, ['a', 1n, null]))).rejects.toMatchObject({
      name: 'DatabaseError',
    });
    expect(await engine.database.query(ALL)).toEqual([]);
  });

  test('after closing, queries fail as unavailable', async () => {
    const other = await openEngine(name);
    await other.database.close();
    await expect(other.database.query(adHoc('SELECT 1 AS one'))).rejects.toMatchObject({ name: 'DatabaseError' });
    await other.dispose();
  });
});

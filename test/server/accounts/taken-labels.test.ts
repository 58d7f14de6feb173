import { describe, expect, test } from 'vitest';
import { createConsumerStore } from '../../../src/server/accounts/consumer-store.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import { ENGINES, openTestDatabase } from '../../gateway/test-database.ts';

// Whether a label is taken is asked for each account and organisation that is made.

const OTHERS = 2_000;

describe.each(ENGINES)('on %s', (engine) => {
  test('a label that is like that of another account is found without reading the labels of all', async () => {
    const database = await openTestDatabase(engine);
    let read = 0;
    const counting: typeof database = {
      ...database,
      async query(...asked) {
        const rows = await database.query(...asked);
        read += rows.length;
        return rows;
      },
    };
    const store = createConsumerStore(counting, { now: Date.now });
    const values = Array.from({ length: OTHERS }, (_, n) => `('tollgate:local:other-${n}', 'Other Number ${n}', 1)`);
    await database.query(adHoc(`INSERT INTO consumers (account, label, created_at) VALUES ${values.join(', ')}`));
    // Stored before labels were trimmed.
    await database.query(adHoc("INSERT INTO consumers (account, label, created_at) VALUES ('old', ' Old  One ', 1)"));
    expect(await store.create('tollgate:local:cafe', 'Café Über')).toMatchObject({ created: true });

    read = 0;
    for (const taken of ['other number 7', 'OTHER  NUMBER 1999', 'old one', 'CAFÉ ÜBER', 'Ｏｔｈｅｒ Number 3']) {
      expect(await store.create('tollgate:local:new', taken), taken).toBeNull();
      expect((await store.rename('tollgate:local:cafe', taken)) === null, taken).toBe(taken !== 'CAFÉ ÜBER');
    }
    for (const free of ['Othernumber 7', 'Other Number', 'Café'])
      expect(await store.create(`tollgate:local:free-${free.length}`, free), free).toMatchObject({ created: true });
    expect(read).toBeLessThan(100);
  });
});

import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openDatabase, type Query } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { type FreshDatabase, freshDatabase } from '../../support/fresh-database.ts';

// Snapshots of PostgreSQL add up many rows. With the server's usual 4 MB, their groups are sorted on the disk.

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase(inject('postgresUrl'));
});
afterAll(() => fresh.drop());

const memory = async (query: Query) =>
  (await query(adHoc("SELECT current_setting('work_mem') AS memory")))[0]!['memory'];

/** What queries have in a snapshot, and outside of it afterwards. */
async function memoryAt(url: string): Promise<readonly unknown[]> {
  const database = await openDatabase({ url, dataDir: '' });
  try {
    return [await database.snapshot(null, memory), await memory(database.query)];
  } finally {
    await database.close();
  }
}

test('a snapshot has 32 MB for its groups, and leaves the connection as it was', async () => {
  expect(await memoryAt(`${fresh.url}?options=-c%20work_mem%3D1500kB`)).toEqual(['32MB', '1500kB']);
});

test('it keeps more that the server gives', async () => {
  expect(await memoryAt(`${fresh.url}?options=-c%20work_mem%3D48MB`)).toEqual(['48MB', '48MB']);
});

import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDatabase, type OpenDatabase } from '#store';
import { adHoc } from '../../support/ad-hoc.ts';
import { newDataDirectory } from '../../support/data-directory.ts';

const PUT = adHoc('INSERT INTO used_nonces (nonce, expires_at) VALUES ($1, $2)');
const COUNT = adHoc('SELECT count(*) AS n FROM used_nonces');
/** Written at once. The first goes alone, as nothing says that others come. */
const WRITES = 40;

let dataDir: string;
let database: OpenDatabase;
beforeEach(async () => {
  dataDir = newDataDirectory();
  database = await openDatabase({ dataDir });
});
afterEach(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true });
});

/** Commits in the write-ahead log: the header of the last page of each has the size of the file, others have 0. */
function countCommits(): number {
  const log = readFileSync(join(dataDir, 'tollgate.db-wal'));
  if (log.byteLength === 0) return 0;
  const pageBytes = log.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + 24 + pageBytes <= log.byteLength; at += 24 + pageBytes)
    if (log.readUInt32BE(at + 4) !== 0) commits += 1;
  return commits;
}

/** In turns of their own, as callers of a server come. */
const inTurns = (ask: (index: number) => Promise<unknown>): Promise<PromiseSettledResult<unknown>[]> =>
  Promise.allSettled(
    Array.from(
      { length: WRITES },
      (_, index) => new Promise((resolve, reject) => setImmediate(() => void ask(index).then(resolve, reject))),
    ),
  );

const put = (index: number) => database.query(PUT, [`n-${index}`, 1]);
const putTwice = (index: number) =>
  database.batch([1, 2].map((of) => ({ statement: PUT, params: [`n-${index}-${of}`, of] })));

test('writes that wait for the disk together share a commit', async () => {
  const before = countCommits();
  await inTurns((index) => (index % 2 === 0 ? put(index) : putTwice(index)));
  expect(await database.query(COUNT)).toEqual([{ n: BigInt(WRITES + WRITES / 2) }]);
  expect(countCommits() - before).toBeLessThan(WRITES / 4);
});

test('one that fails among them gets its own error, and undoes no other', async () => {
  const results = await inTurns((index) => (index % 10 === 7 ? putTwice(index % 20 === 7 ? 0 : 1) : putTwice(index)));
  const refused = results.flatMap((result, index) => (result.status === 'rejected' ? [[index, result.reason]] : []));
  expect(refused.map(([index]) => index)).toEqual([7, 17, 27, 37]);
  for (const [, reason] of refused) expect(reason).toMatchObject({ name: 'DatabaseError', code: 'unique_violation' });
  expect(await database.query(COUNT)).toEqual([{ n: BigInt((WRITES - 4) * 2) }]);
});

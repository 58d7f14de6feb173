import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { audit as Audit, createLedger as CreateLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import type { OpenDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { createMutant, type Mutant } from '../support/mutant.ts';

let mutant: Mutant;
let store: typeof import('#store');
let billing: { createLedger: typeof CreateLedger; audit: typeof Audit };
/** The tables follow only when they have to, and may be a few records behind. */
beforeAll(async () => {
  mutant = createMutant([
    { file: 'src/foundation/store/sqlite-worker.ts', find: 'GATHER_MS_BUSY = 250', put: 'GATHER_MS_BUSY = 100_000' },
    { file: 'src/foundation/store/log/ledger-log.ts', find: 'BEHIND_MAX = 8 * 1024 * 1024', put: 'BEHIND_MAX = 2_000' },
  ]);
  store = (await import(mutant.url('src/foundation/store/index.ts'))) as typeof store;
  billing = (await import(mutant.url('src/billing/compose.ts'))) as typeof billing;
});
afterAll(() => mutant.dispose());

let dataDir: string;
let database: OpenDatabase;
let ledger: Ledger;
beforeEach(async () => {
  dataDir = newDataDirectory();
  database = await store.openDatabase({ dataDir });
  ledger = await billing.createLedger({ database });
});
afterEach(async () => {
  await ledger.close();
  await database.close();
  rmSync(dataDir, { recursive: true });
});

const credit = (id: string) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount: 1n, memo: 'x'.repeat(100) });

/** The tables as they are on disk, which no rule of ours watches over. */
function inTables<T>(read: (tables: DatabaseSync) => T): T {
  const tables = new DatabaseSync(join(dataDir, 'tollgate.db'), { readOnly: true, timeout: 10_000 });
  try {
    return read(tables);
  } finally {
    tables.close();
  }
}
const countInTables = (table: 'transfers' | 'locks'): number =>
  inTables((tables) => (tables.prepare(`SELECT COUNT(*) AS count FROM ${table}`).get() as { count: number }).count);

test('whoever asks for a table of the ledger sees all that is in the log', async () => {
  const COUNT = adHoc('SELECT COUNT(*) AS count FROM transfers');
  const ONE = adHoc('SELECT 1 AS count');
  // A query that names none of these tables does not make them follow.
  await credit('one');
  await database.query(ONE);
  expect(countInTables('transfers')).toBe(0);
  expect(await database.query(COUNT)).toEqual([{ count: 1n }]);
  expect(countInTables('transfers')).toBe(1);
  await credit('two');
  expect(await database.batch([{ statement: ONE }, { statement: COUNT }])).toEqual([[{ count: 1n }], [{ count: 2n }]]);
  await credit('three');
  expect(await database.snapshot(null, (query) => query(COUNT))).toEqual([{ count: 3n }]);
  await credit('four');
  expect(await ledger.balance('escrow:a')).toEqual({ available: 4n, locked: 0n });
  expect((await billing.audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});

test('records wait while the tables are too far behind', async () => {
  await credit('fund');
  const lock = (id: string) =>
    ledger.lock({
      id,
      account: 'a',
      amount: 0n,
      prices: ['p'],
      expiresAt: 9e12,
      // Such a lock waits until it is in the log.
      workDone: true,
      detail: 'x'.repeat(300),
    });
  let most = 0;
  for (let turn = 0; turn < 40; turn += 1) {
    expect(await lock(`lock-${String(turn).padStart(4, '0')}`)).toMatchObject({ ok: true });
    const inLog = turn + 1;
    most = Math.max(most, inLog - countInTables('locks'));
  }
  // A record is about 700 bytes here.
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThan(8);
  expect((await billing.audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});

test('an id is refused for ever, in whatever order ids come and whatever memory keeps', async () => {
  await credit('fund');
  const lock = (id: string) =>
    ledger.lock({ id, account: 'a', amount: 0n, prices: ['p'], expiresAt: 9e12, detail: '{}' });
  const ids = ['m-5', 'm-1', 'm-9', 'a', 'z', 'm-3', 'ü', 'm-\u{1F600}', '\uFFFD', 'm-7', 'm-4', 'm-6'];
  for (const id of ids) expect({ id, ...(await lock(id)) }).toMatchObject({ id, ok: true });
  for (const id of ids.slice(0, 6)) await ledger.release({ id, detail: '{}' });
  for (const id of ids) expect({ id, ...(await lock(id)) }).toMatchObject({ id, ok: false, reason: 'duplicate' });
  await expect(lock('half \uD800')).rejects.toThrow('lone surrogate');
  await ledger.close();
  await database.close();
  database = await store.openDatabase({ dataDir });
  ledger = await billing.createLedger({ database });
  for (const id of ids) expect({ id, ...(await lock(id)) }).toMatchObject({ id, ok: false, reason: 'duplicate' });
  expect(await lock('m-8')).toMatchObject({ ok: true });
  expect(await lock('m-8')).toMatchObject({ reason: 'duplicate' });
  expect((await billing.audit(database, { overdueMs: null })).checks.filter(({ ok }) => !ok)).toEqual([]);
});

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { GENESIS, openDatabase, type OpenDatabase } from '#store';
import { hashBatch } from '../../src/billing/ledger/journal.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { loadLedger } from '../support/ledger-load.ts';

let dataDir: string;
let database: OpenDatabase;
let ledger: Ledger;
beforeEach(async () => {
  dataDir = newDataDirectory();
  await open();
  await createPriceBook(database).remember([CRASH_PRICE]);
});
afterEach(async () => {
  await close();
  rmSync(dataDir, { recursive: true });
});

async function open(options = {}, now = Date.now): Promise<void> {
  database = await openDatabase({ dataDir, ...options });
  ledger = await createLedger({ database, now });
}
async function close(): Promise<void> {
  await ledger.close();
  await database.close();
}
/** The log is lost, and a new one is begun with the tables. */
async function loseLog(): Promise<void> {
  await close();
  rmSync(join(dataDir, 'ledger'), { recursive: true });
  await expect(openDatabase({ dataDir })).rejects.toMatchObject({
    code: 'log_gone',
    message: expect.stringMatching(
      /follows it up to record \d+\. Restore .* tollgate restored --accept begins a new log/,
    ),
  });
  await open({ withoutLog: true });
}
const differences = async () => (await audit(database, { overdueMs: null })).checks.filter(({ ok }) => !ok);
const lock = (id: string, more = {}) =>
  ledger.lock({ id, account: 'a', amount: 100n, prices: [CRASH_PRICE.id], expiresAt: 9e12, detail: '{}', ...more });

test('is begun anew with the tables, whose books are right and go on', async () => {
  let pairs = 0;
  const { surprises } = await loadLedger(ledger, {
    width: 8,
    prefix: 'load',
    done: () => pairs > 300,
    onPair: () => (pairs += 1),
  });
  expect(surprises).toEqual([]);
  const before = await ledger.balance('escrow:load');
  const { totals } = await audit(database, { overdueMs: null });
  await loseLog();
  expect(await differences()).toEqual([]);
  expect((await audit(database, { overdueMs: null })).totals).toEqual(totals);
  expect(await ledger.balance('escrow:load')).toEqual(before);

  expect(
    await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 900n, memo: '' }),
  ).toMatchObject({
    ok: true,
  });
  expect(await lock('load-0-0')).toMatchObject({ reason: 'duplicate' });
  expect(await lock('after')).toEqual({ ok: true, available: 800n });
  await close();
  await expect(openDatabase({ dataDir, withoutLog: true })).rejects.toThrow('exists, so no new log is needed');
  await open();
  expect(await differences()).toEqual([]);
  // Once more: what the journal has already is not told twice.
  await loseLog();
  expect(await differences()).toEqual([]);
  expect(await ledger.balance('escrow:a')).toEqual({ available: 800n, locked: 100n });
});

test('also of locks that gave back to their parent in the millisecond in which it ended', async () => {
  await close();
  await open({}, () => 1_000);
  await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 900n, memo: '' });
  await lock('run', { amount: 500n, lendable: 400n });
  for (const id of ['before', 'after']) await lock(id, { parent: 'run' });
  for (const id of ['before', 'run', 'after']) await ledger.release({ id, detail: '{}' });
  await loseLog();
  expect(await differences()).toEqual([]);
  expect(await ledger.balance('escrow:a')).toEqual({ available: 900n, locked: 0n });
});

test('shows what the tables contradict themselves in', async () => {
  await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 900n, memo: '' });
  await database.query(adHoc("UPDATE accounts SET available = 901 WHERE id = 'escrow:a'"));
  await loseLog();
  expect((await differences()).map(({ name }) => name)).toEqual(['balances']);
});

test('is the repair of books that a version from before the log has written to', async () => {
  const credit = (id: string) =>
    ledger.transfer({ id, from: 'treasury:operator', to: 'escrow:a', amount: 10n, memo: '' });
  expect(await credit('first')).toMatchObject({ ok: true });
  await close();
  // That version writes to the tables alone, where it finds no journal, and so begins one.
  const row = {
    kind: 'transfer',
    id: 'of the old version',
    account: 'treasury:operator',
    counterparty: 'escrow:b',
    amount: 7n,
    charged: 0n,
    fee: 0n,
    drawn: 0n,
    price: null,
    at: 5,
  };
  const hash = hashBatch(GENESIS, 'main', 1, 5, [row as never]);
  database = await openDatabase({ dataDir });
  const statements = [
    "UPDATE accounts SET available = available - 7 WHERE id = 'treasury:operator'",
    "INSERT INTO accounts VALUES ('escrow:b', 7, 0)",
    `INSERT INTO transfers VALUES ('${row.id}', '${row.account}', '${row.counterparty}', 7, '', 5)`,
    `INSERT INTO journal VALUES ('main', 1, 0, 'transfer', '${row.id}', '${row.account}', '${row.counterparty}', 7, 0, 0, 0, NULL, 5)`,
    `INSERT INTO journal_batches (chain, n, at, count, prev, hash) VALUES ('main', 1, 5, 1, '${GENESIS}', '${hash}')`,
  ];
  await database.batch(statements.map((text) => ({ statement: adHoc(text) })));
  await database.close();

  await open();
  expect(await credit('second')).toMatchObject({ ok: true });
  expect((await differences()).map(({ name }) => name)).toContain('hash chains');
  await loseLog();
  expect(await differences()).toEqual([]);
  expect(await ledger.balance('escrow:b')).toEqual({ available: 7n, locked: 0n });
  expect(await credit('third')).toMatchObject({ ok: true });
  expect(await differences()).toEqual([]);
});

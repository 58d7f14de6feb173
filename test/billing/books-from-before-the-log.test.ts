import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { audit, compareJournal, createLedger, hasOldBooks, journalHead } from '#billing/compose';
import { GENESIS, openDatabase } from '#store';
import { hashBatch } from '../../src/billing/ledger/journal.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { newDataDirectory } from '../support/data-directory.ts';

/** A data directory as it was before the ledger had a log: a credit of 10, and a lock of 4 that is held. */
async function oldDirectory(): Promise<{ dataDir: string; hash: string }> {
  const dataDir = newDataDirectory();
  const database = await openDatabase({ dataDir });
  const row = { counterparty: null, charged: 0n, fee: 0n, drawn: 0n, price: null, at: 5 };
  const credit = {
    ...row,
    kind: 'transfer',
    id: 'fund',
    account: 'treasury:test',
    counterparty: 'escrow:a',
    amount: 10n,
  };
  const lock = { ...row, kind: 'lock', id: 'held', account: 'escrow:a', amount: 4n };
  const first = hashBatch(GENESIS, 'main', 1, 5, [credit as never]);
  const hash = hashBatch(first, 'main', 2, 5, [lock as never]);
  const statements = [
    "INSERT INTO accounts VALUES ('treasury:test', -10, 0), ('escrow:a', 6, 4)",
    "INSERT INTO transfers VALUES ('fund', 'treasury:test', 'escrow:a', 10, '', 5)",
    `INSERT INTO locks (id, account, amount, prices, state, charged, fee, drawn, shortfall, created_at, expires_at, lock_detail)
     VALUES ('held', 'a', 4, '["p"]', 'held', 0, 0, 0, 0, 5, 900, '{}')`,
    `INSERT INTO journal VALUES
       ('main', 1, 0, 'transfer', 'fund', 'treasury:test', 'escrow:a', 10, 0, 0, 0, NULL, 5),
       ('main', 2, 0, 'lock', 'held', 'escrow:a', NULL, 4, 0, 0, 0, NULL, 5)`,
    `INSERT INTO journal_batches (chain, n, at, count, prev, hash) VALUES ('main', 1, 5, 1, '${GENESIS}', '${first}'), ('main', 2, 5, 1, '${first}', '${hash}')`,
    'DROP TABLE ledger_log',
    "DELETE FROM migrations WHERE name = '0022_ledger-log'",
    "DELETE FROM migrated_by WHERE name = '0022_ledger-log'",
  ];
  await database.batch(statements.map((text) => ({ statement: adHoc(text) })));
  await database.close();
  rmSync(`${dataDir}/ledger`, { recursive: true });
  return { dataDir, hash };
}

test('are taken over at the next start: the log goes on with their chain, and the audit reads both', async () => {
  const { dataDir, hash } = await oldDirectory();
  const database = await openDatabase({ dataDir });
  expect(await hasOldBooks(database)).toBe(true);
  expect((await audit(database, { overdueMs: null })).checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(await compareJournal(database, { chain: 'main', n: 2, hash })).toEqual({ state: 'there' });
  expect(await compareJournal(database, { chain: 'main', n: 3, hash })).toEqual({ state: 'behind', end: 2 });

  const ledger = await createLedger({ database });
  expect(await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 10n, memo: '' })).toEqual({
    ok: false,
    reason: 'duplicate',
    available: -10n,
  });
  expect(await ledger.release({ id: 'held', detail: '{}' })).toEqual({ ok: true });
  expect(await ledger.balance('escrow:a')).toEqual({ available: 10n, locked: 0n });
  const head = await journalHead(database, 'main');
  expect(head.n).toBe(3);
  expect(await hasOldBooks(database)).toBe(false);
  for (const known of [{ chain: 'main', n: 2, hash }, head])
    expect(await compareJournal(database, known)).toEqual({ state: 'there' });
  expect(await compareJournal(database, { ...head, hash })).toEqual({ state: 'other' });
  const report = await audit(database, { overdueMs: null });
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(report.totals).toMatchObject({ operations: 3, locksReleased: 1 });

  await database.query(adHoc('UPDATE journal SET amount = 11 WHERE batch = 1'));
  const tampered = await audit(database, { overdueMs: null });
  const failed = tampered.checks.filter(({ ok }) => !ok).map(({ name }) => name);
  expect(failed).toEqual(['balances', 'transfers', 'hash chains']);
  await database.close();
  rmSync(dataDir, { recursive: true });
});

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { audit, compareJournal, createLedger, createPriceBook, journalHead } from '#billing/compose';
import { GENESIS } from '#store';
import type { JournalRow } from '../../src/billing/ledger/ledger-changes.ts';
import { hashBatch } from '../../src/billing/ledger/journal.ts';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { openEngine, type OpenedEngine } from '../support/engines.ts';

let engine: OpenedEngine;
beforeEach(async () => {
  engine = await openEngine('postgres');
  await createPriceBook(engine.database).remember([CRASH_PRICE]);
});
afterEach(() => engine.dispose());

const run = (...statements: readonly string[]) =>
  engine.database.batch(statements.map((text) => ({ statement: adHoc(text) })));
const rowsOf = async (text: string) => engine.database.query(adHoc(text));
const differences = async () =>
  (await audit(engine.database, { overdueMs: null })).checks.filter(({ ok }) => !ok).map(({ name }) => name);

const settlement = {
  price: CRASH_PRICE.id,
  provider: 'p',
  charge: 3n,
  draw: false,
  feeBps: 0,
  usage: '{"call":3}',
  detail: '{}',
};

test('of a group of many calls, with the movements of all of them', async () => {
  const ledger = await createLedger({ database: engine.database });
  await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  const ids = Array.from({ length: 40 }, (_, index) => `call "${index}"\\`);
  const lock = { account: 'a', amount: 10n, prices: [CRASH_PRICE.id], expiresAt: 9e12, detail: '{"a":"\\"\\\\"}' };
  await Promise.all(ids.map((id) => ledger.lock({ id, ...lock })));
  await Promise.all(ids.map((id) => ledger.settle({ id, ...settlement })));
  expect(await rowsOf('SELECT n, count FROM journal_batches ORDER BY n')).toEqual([
    { n: 1n, count: 1n },
    { n: 2n, count: 40n },
    { n: 3n, count: 40n },
  ]);
  expect(await rowsOf('SELECT * FROM journal')).toEqual([]);
  expect(await ledger.find(ids[7]!)).toMatchObject({ id: ids[7], lockDetail: lock.detail, state: 'settled' });
  expect((await audit(engine.database)).totals).toMatchObject({ operations: 81, charged: 120n });
  expect(await differences()).toEqual([]);
  await ledger.close();
});

test('and a text of a lock that is no JSON is refused alone', async () => {
  const ledger = await createLedger({ database: engine.database });
  const lock = { account: 'a', amount: 0n, prices: [CRASH_PRICE.id], expiresAt: 9e12 };
  const [good, bad] = await Promise.allSettled([
    ledger.lock({ id: 'good', ...lock, detail: '{}' }),
    ledger.lock({ id: 'bad', ...lock, detail: '{"a":"\u001F"}' }),
  ]);
  expect(good).toMatchObject({ status: 'fulfilled', value: { ok: true } });
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'check_violation' } });
  await ledger.close();
});

describe('the audit tells', () => {
  beforeEach(async () => {
    const ledger = await createLedger({ database: engine.database });
    await ledger.transfer({ id: 'one', from: 'treasury:test', to: 'escrow:a', amount: 10n, memo: '' });
    await ledger.transfer({ id: 'two', from: 'treasury:test', to: 'escrow:a', amount: 5n, memo: '' });
    await ledger.close();
    expect(await differences()).toEqual([]);
  });

  test.each([
    ['no JSON', "'nothing'"],
    ['rows that are none', `'[{}, 7, "text"]'`],
    ['an amount that is none', `'[["transfer","two","treasury:test","escrow:a","much"]]'`],
    ['a character that no text can have', `'[["transfer","two\\u0000","treasury:test","escrow:a","5"]]'`],
  ])('movements that are %s', async (_, movements) => {
    await run(`UPDATE journal_batches SET movements = ${movements} WHERE n = 2`);
    expect(await differences()).toEqual(['balances', 'transfers', 'hash chains']);
  });

  test('another count of movements', async () => {
    await run('UPDATE journal_batches SET count = 7 WHERE n = 2');
    expect(await differences()).toEqual(['hash chains']);
  });

  test('a row beside the movements of its group', async () => {
    await run(
      "INSERT INTO journal SELECT chain, n, 5, 'transfer', 'more', 'treasury:test', 'escrow:a', 1, 0, 0, 0, NULL, at FROM journal_batches WHERE n = 2",
      "INSERT INTO transfers VALUES ('more', 'treasury:test', 'escrow:a', 1, '', (SELECT at FROM journal_batches WHERE n = 2))",
      "UPDATE accounts SET available = available + 1 WHERE id = 'escrow:a'",
      "UPDATE accounts SET available = available - 1 WHERE id = 'treasury:test'",
    );
    expect(await differences()).toEqual(['hash chains']);
  });
});

describe('a database of before', () => {
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
  const first = hashBatch(GENESIS, 'old', 1, 5, [credit as JournalRow]);
  const second = hashBatch(first, 'old', 2, 5, [lock as JournalRow]);

  /** What a gateway of before writes: a credit of 10, and a lock of 4 that is held. */
  const BEFORE = [
    "INSERT INTO accounts VALUES ('treasury:test', -10, 0), ('escrow:a', 6, 4)",
    "INSERT INTO transfers VALUES ('fund', 'treasury:test', 'escrow:a', 10, '', 5)",
    `INSERT INTO locks (id, account, amount, prices, state, charged, fee, drawn, shortfall, created_at, expires_at, lock_detail)
     VALUES ('held', 'a', 4, '["${CRASH_PRICE.id}"]', 'held', 0, 0, 0, 0, 5, 900, '{}')`,
    `INSERT INTO journal (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at) VALUES
       ('old', 1, 0, 'transfer', 'fund', 'treasury:test', 'escrow:a', 10, 0, 0, 0, NULL, 5),
       ('old', 2, 0, 'lock', 'held', 'escrow:a', NULL, 4, 0, 0, 0, NULL, 5)`,
    `INSERT INTO journal_batches (chain, n, at, count, prev, hash)
     VALUES ('old', 1, 5, 1, '${GENESIS}', '${first}'), ('old', 2, 5, 1, '${first}', '${second}')`,
  ];

  test('is migrated at the next start, and its books go on', async () => {
    await run(
      ...BEFORE,
      'ALTER TABLE journal_batches DROP COLUMN movements',
      'CREATE VIEW entries AS SELECT chain FROM journal',
      "DELETE FROM migrations WHERE name = '0023_groups-in-the-journal'",
      "DELETE FROM migrated_by WHERE name = '0023_groups-in-the-journal'",
    );
    const database = await engine.again();
    expect(await compareJournal(database, { chain: 'old', n: 2, hash: second })).toEqual({ state: 'there' });
    expect(await differences()).toEqual([]);
    const ledger = await createLedger({ database });
    expect(await ledger.settle({ id: 'held', ...settlement })).toMatchObject({ ok: true, charged: 3n });
    expect(await ledger.balance('escrow:a')).toEqual({ available: 7n, locked: 0n });
    expect(await differences()).toEqual([]);
    expect((await audit(database)).totals).toMatchObject({ operations: 3, locksSettled: 1 });
    await run('UPDATE journal SET amount = 11 WHERE batch = 1');
    expect(await differences()).toEqual(['balances', 'transfers', 'hash chains']);
    await ledger.close();
  });

  test('may be written by gateways of both at once', async () => {
    const ledger = await createLedger({ database: engine.database });
    expect(await ledger.transfer({ id: 'new', from: 'treasury:new', to: 'escrow:b', amount: 1n, memo: '' })).toEqual({
      ok: true,
      available: -1n,
    });
    await run(...BEFORE);
    expect(await ledger.release({ id: 'held', detail: '{}' })).toEqual({ ok: true });
    expect(await differences()).toEqual([]);
    expect((await journalHead(engine.database, 'old')).n).toBe(2);
    await ledger.close();
  });
});

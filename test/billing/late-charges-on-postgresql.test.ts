import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { DatabaseError, openDatabase, type OpenDatabase } from '#store';
import { adHoc } from '../support/ad-hoc.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';

/*
 * On this server nothing but the gateways flushes for ten seconds, so a crash loses what was committed last.
 */
const FLUSH_MS = 1_000;

let postgres: Postgres;
let database: OpenDatabase;
let ledger: Ledger;
beforeAll(async () => {
  postgres = await startPostgres({ settings: { wal_writer_delay: '10s', autovacuum: 'off' } });
  database = await openDatabase({ url: postgres.url, dataDir: '' });
  ledger = await createLedger({ database, flushMs: FLUSH_MS });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await credit('fund', 1_000n);
});
afterAll(async () => {
  await ledger.close();
  await database.close();
  await postgres.stop();
});
let last = '';
beforeEach(({ task }) => {
  last = task.id;
});

const credit = (id: string, amount: bigint) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount, memo: '' });
const lock = (id: string) =>
  ledger.lock({
    id,
    account: 'a',
    amount: 100n,
    prices: [CRASH_PRICE.id],
    expiresAt: Date.now() + 600_000,
    endsWithCall: true,
    detail: '{}',
  });
const settle = (id: string, mayBeLate = true, by = ledger) =>
  by.settle({
    id,
    charge: 7n,
    price: CRASH_PRICE.id,
    provider: 'p',
    draw: false,
    feeBps: 0,
    usage: '{"call":7}',
    detail: '{}',
    mayBeLate,
  });
const failing = async () => (await audit(database)).checks.filter(({ ok }) => !ok);
const crash = () => postgres.restart('immediate');

/** A charge and the money that it moved. */
const seen = async (id: string) => {
  const [row] = await database.query(adHoc(`SELECT state FROM locks WHERE id = '${id}'`));
  return row?.['state'] ?? null;
};

test('a crash undoes a late charge, and the consumer has the money again', async () => {
  await lock(last);
  await credit(`${last}-flush`, 1n);
  const { available } = (await ledger.balance('escrow:a'))!;
  expect(await settle(last)).toMatchObject({ ok: true, charged: 7n });
  expect(await seen(last)).toBe('settled');
  await crash();
  expect(await seen(last)).toBe('held');
  expect(await ledger.release({ id: last, detail: '{}' })).toEqual({ ok: true });
  expect((await ledger.balance('escrow:a'))!.available).toBe(available + 100n);
  expect(await failing()).toEqual([]);
});

test('a charge that may not be late survives a crash, with the late ones before it', async () => {
  for (const id of [`${last}-1`, `${last}-2`]) await lock(id);
  await settle(`${last}-1`);
  await settle(`${last}-2`, false);
  await crash();
  for (const id of [`${last}-1`, `${last}-2`]) expect(await seen(id)).toBe('settled');
  expect(await failing()).toEqual([]);
});

test('a withdrawal survives a crash, with the late charges that it is paid from', async () => {
  await lock(last);
  await settle(last);
  const { available } = (await ledger.balance('earnings:p'))!;
  const away = { id: `${last}-away`, from: 'earnings:p', to: 'treasury:test', amount: available, memo: '' };
  expect(await ledger.transfer(away)).toMatchObject({ ok: true });
  await crash();
  expect(await seen(last)).toBe('settled');
  expect(await failing()).toEqual([]);
});

test('a charge that was looked up, as for a receipt, survives a crash', async () => {
  await lock(last);
  await settle(last);
  expect(await ledger.find(last)).toMatchObject({ state: 'settled' });
  await crash();
  expect(await seen(last)).toBe('settled');
  expect(await failing()).toEqual([]);
});

test.each([
  ['without anything that follows it', 0],
  ['though a flush of it fails', 1],
])('a late charge is flushed %s', async (_how, failures) => {
  let left = failures;
  const batch: OpenDatabase['batch'] = (steps) => {
    if (!steps.some(({ statement }) => statement.name.endsWith('.pgWriteSomething')) || left === 0)
      return database.batch(steps);
    left -= 1;
    return Promise.reject(new DatabaseError('away', { code: 'connection', unavailable: true }));
  };
  const failingOnes = { ...database, batch } as OpenDatabase;
  const other = await createLedger({ database: failingOnes, flushMs: FLUSH_MS });
  await lock(last);
  await settle(last, true, other);
  const flushed = async () => {
    const [row] = await database.query(
      adHoc('SELECT CAST(pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() AS INTEGER) AS flushed'),
    );
    return row!['flushed'];
  };
  // PostgreSQL may flush by itself before.
  await vi.waitFor(() => expect(left).toBe(0), { timeout: 60_000, interval: 20 });
  await vi.waitFor(async () => expect(await flushed()).toBe(1n), { timeout: 60_000, interval: 20 });
  await crash();
  expect(await seen(last)).toBe('settled');
  expect(await failing()).toEqual([]);
});

test('while the disk has not had a charge for longer than the bound, further charges wait for it', async () => {
  for (const id of [`${last}-1`, `${last}-2`]) await lock(id);
  await settle(`${last}-1`);
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + FLUSH_MS);
  await settle(`${last}-2`);
  clock.mockRestore();
  await crash();
  for (const id of [`${last}-1`, `${last}-2`]) expect(await seen(id)).toBe('settled');
  expect(await failing()).toEqual([]);
});

test('with `each`, a charge that might be late survives a crash', async () => {
  const each = await createLedger({ database });
  await lock(last);
  expect(await settle(last, true, each)).toMatchObject({ ok: true });
  await crash();
  expect(await seen(last)).toBe('settled');
  await each.close();
  expect(await failing()).toEqual([]);
});

test('an end of the ledger flushes what was answered', async () => {
  const other = await createLedger({ database, flushMs: FLUSH_MS });
  await lock(last);
  await settle(last, true, other);
  await other.close();
  await crash();
  expect(await seen(last)).toBe('settled');
  expect(await failing()).toEqual([]);
});

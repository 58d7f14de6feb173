import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { holdWrites, isWaiting } from '../support/held-disk.ts';

const FLUSH_MS = 1_000;

let dataDir: string;
let database: OpenDatabase;
let ledger: Ledger;
let releaseDisk = () => {};
beforeEach(async () => {
  dataDir = newDataDirectory();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database, flushMs: FLUSH_MS });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:a', amount: 1_000n, memo: '' });
  // The first ones read the tables.
  await lock('first');
  await settle('first', false);
});
afterEach(async () => {
  releaseDisk();
  vi.restoreAllMocks();
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await ledger.close();
  await database.close();
  rmSync(dataDir, { recursive: true });
});

function hold() {
  const disk = holdWrites(dataDir);
  releaseDisk = disk.release;
  return disk;
}
const lock = (id: string) =>
  ledger.lock({
    id,
    account: 'a',
    amount: 100n,
    prices: [CRASH_PRICE.id],
    expiresAt: Date.now() + 600_000,
    detail: '{}',
  });
const settle = (id: string, mayBeLate = true) =>
  ledger.settle({
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
const head = () => (database.engine === 'sqlite' ? database.log.head.n : 0);

test('a charge that may be late is answered while the disk is held up, and one that may not is not', async () => {
  await lock('late');
  await lock('released');
  await lock('receipt');
  const disk = hold();
  expect(await settle('late')).toMatchObject({ ok: true, charged: 7n });
  expect(await ledger.release({ id: 'released', detail: '{}', mayBeLate: true })).toEqual({ ok: true });
  const durable = settle('receipt', false);
  expect(await isWaiting(durable)).toBe(true);
  disk.release();
  expect(await durable).toMatchObject({ ok: true, charged: 7n });
});

test('a withdrawal, a kept lock and a repeated end wait, with all that was answered before', async () => {
  await lock('late');
  await lock('task');
  const before = head();
  const disk = hold();
  await settle('late');
  const away = ledger.transfer({ id: 'w', from: 'earnings:p', to: 'treasury:test', amount: 14n, memo: '' });
  const waiting = [away, ledger.keep('task', Date.now() + 900_000), settle('late')];
  for (const each of waiting) expect(await isWaiting(each)).toBe(true);
  expect(head()).toBe(before);
  disk.release();
  expect(await Promise.all(waiting)).toMatchObject([{ ok: true }, { ok: true }, { reason: 'already_resolved' }]);
  expect(head()).toBeGreaterThan(before);
});

test('a late charge is written without anything that follows it', async () => {
  await lock('late');
  const before = head();
  await settle('late');
  expect(head()).toBe(before);
  await vi.waitFor(() => expect(head()).toBe(before + 1), { timeout: 60_000, interval: 5 });
});

test('while the disk is held up for longer than the bound, further charges wait', async () => {
  for (const id of ['late', 'in-time', 'too-late']) await lock(id);
  const disk = hold();
  const clock = vi.spyOn(performance, 'now');
  const begun = Math.ceil(performance.now());
  clock.mockImplementation(() => begun);
  await settle('late');
  // Another record waits for the flush of the first.
  await vi.waitFor(() => expect(disk.held.length).toBe(1), { timeout: 60_000, interval: 5 });
  clock.mockImplementation(() => begun + FLUSH_MS - 1);
  expect(await settle('in-time')).toMatchObject({ ok: true });
  clock.mockImplementation(() => begun + FLUSH_MS);
  const waiting = settle('too-late');
  expect(await isWaiting(waiting)).toBe(true);
  disk.release();
  expect(await waiting).toMatchObject({ ok: true });
});

test('whoever reads the tables sees a late charge, on the disk', async () => {
  await lock('late');
  const before = head();
  await settle('late');
  expect(await ledger.find('late')).toMatchObject({ state: 'settled', charged: 7n });
  expect(head()).toBe(before + 1);
});

test('an end of the ledger writes what was answered', async () => {
  await lock('late');
  await settle('late');
  await ledger.close();
  await database.close();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  expect(await ledger.find('late')).toMatchObject({ state: 'settled', charged: 7n });
});

test('with `each`, charges that might be late wait for the disk', async () => {
  await ledger.close();
  await database.close();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  await lock('warm');
  await settle('warm');
  for (const id of ['settled', 'released']) await lock(id);
  const disk = hold();
  const waiting = [settle('settled'), ledger.release({ id: 'released', detail: '{}', mayBeLate: true })];
  for (const each of waiting) expect(await isWaiting(each)).toBe(true);
  disk.release();
  expect(await Promise.all(waiting)).toMatchObject([{ ok: true }, { ok: true }]);
});

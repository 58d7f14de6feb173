import { cpSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { LedgerUnavailable, type Ledger } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { newDataDirectory } from '../support/data-directory.ts';
import { holdWrites, isWaiting } from '../support/held-disk.ts';

let dataDir: string;
let database: OpenDatabase;
let ledger: Ledger;
/** Lets the held writes go. */
let releaseDisk = () => {};
beforeEach(async () => {
  dataDir = newDataDirectory();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await credit('fund', 1_000_000n);
  // The first lock reads the tables, to learn which ids are unused.
  await lock('first');
  await ledger.release({ id: 'first', detail: '{}' });
});
afterEach(async () => {
  releaseDisk();
  vi.restoreAllMocks();
  await ledger.close();
  await database.close();
  rmSync(dataDir, { recursive: true });
});

const credit = (id: string, amount: bigint) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount, memo: '' });
const lock = (id: string, parent?: string) =>
  ledger.lock({
    id,
    account: 'a',
    amount: 100n,
    prices: [CRASH_PRICE.id],
    expiresAt: Date.now() + 600_000,
    detail: '{}',
    ...(parent === undefined ? {} : { parent }),
  });
const settlement = (id: string) => ({
  id,
  charge: 7n,
  price: CRASH_PRICE.id,
  provider: 'p',
  draw: false,
  feeBps: 0,
  usage: '{"call":7}',
  detail: '{}',
});
const settle = (id: string) => ledger.settle(settlement(id));

function hold() {
  const disk = holdWrites(dataDir);
  releaseDisk = disk.release;
  return disk;
}

const failing = async () => (await audit(database)).checks.filter(({ ok }) => !ok);

test('a lock is answered while the disk is held up, and a settlement is not', async () => {
  const disk = hold();
  expect(await lock('one')).toEqual({ ok: true, available: 999_900n });
  expect(await lock('two')).toEqual({ ok: true, available: 999_800n });
  const settled = settle('one');
  expect(await isWaiting(settled)).toBe(true);
  // What was decided counts, although it is not on the disk.
  expect(await lock('three')).toEqual({ ok: true, available: 999_793n });
  disk.release();
  expect(await settled).toMatchObject({ ok: true, charged: 7n });
  expect(await failing()).toEqual([]);
});

test('what makes a lock outlive its process waits for the disk, with the lock', async () => {
  const disk = hold();
  await lock('task');
  const kept = ledger.keep('task', Date.now() + 900_000);
  expect(await isWaiting(kept)).toBe(true);
  disk.release();
  expect(await kept).toEqual({ ok: true });
});

test('a lock whose work is done already waits for the disk', async () => {
  const disk = hold();
  const request = {
    id: 'free',
    account: 'a',
    amount: 0n,
    prices: [CRASH_PRICE.id],
    expiresAt: Date.now(),
    detail: '{}',
  };
  const locked = ledger.lock({ ...request, workDone: true });
  expect(await isWaiting(locked)).toBe(true);
  disk.release();
  expect(await locked).toMatchObject({ ok: true });
});

test('calls whose ends reach the disk together ended when the books say so', async () => {
  const ids = ['one', 'two', 'three'];
  for (const id of ids) await lock(id);
  const disk = hold();
  const ends = [settle('one')];
  expect(await isWaiting(ends[0]!)).toBe(true);
  ends.push(settle('two'));
  const begun = Date.now();
  while (Date.now() < begun + 3) await delay(1);
  ends.push(settle('three'));
  disk.release();
  for (const [at, end] of (await Promise.all(ends)).entries())
    expect(end).toMatchObject({ ok: true, resolvedAt: (await ledger.find(ids[at]!))!.resolvedAt });
  expect(await failing()).toEqual([]);
});

test('a repetition is told that it is one when the first is on the disk', async () => {
  await lock('one');
  const disk = hold();
  const both = [settle('one'), settle('one'), credit('again', 5n), credit('again', 5n)];
  for (const each of both) expect(await isWaiting(each)).toBe(true);
  disk.release();
  expect(await Promise.all(both)).toMatchObject([
    { ok: true },
    { reason: 'already_resolved' },
    { ok: true },
    { reason: 'duplicate' },
  ]);
});

test('a lock is written without anything that follows it', async () => {
  const head = () => (database.engine === 'sqlite' ? database.log.head.n : 0);
  const before = head();
  await lock('alone');
  expect(head()).toBe(before);
  await vi.waitFor(() => expect(head()).toBe(before + 1), { timeout: 60_000, interval: 5 });
});

test('whoever reads the tables sees the lock', async () => {
  await lock('parent-of-none');
  expect(await ledger.find('parent-of-none')).toMatchObject({ state: 'held', amount: 100n });
  await lock('late');
  expect(await ledger.expire(Date.now() + 700_000)).toEqual(expect.arrayContaining(['late', 'parent-of-none']));
  await lock('audited');
  expect((await audit(database)).totals).toMatchObject({ locksHeld: 1 });
});

test('locks and settlements of one moment are one record, with the time of each lock', async () => {
  const begun = Date.now();
  let at = begun;
  const own = await createLedger({ database, now: () => (at += 1) });
  const request = { account: 'a', amount: 100n, prices: [CRASH_PRICE.id], expiresAt: at + 600_000, detail: '{}' };
  await own.lock({ id: 'one', ...request });
  await own.lock({ id: 'two', ...request });
  await own.settle(settlement('one'));
  const [one, two] = [(await own.find('one'))!, (await own.find('two'))!];
  expect(one).toMatchObject({ createdAt: begun + 1, state: 'settled' });
  expect(two).toMatchObject({ createdAt: begun + 2, state: 'held' });
  expect(one.resolvedAt).toBeGreaterThan(two.createdAt);
  expect(await failing()).toEqual([]);
});

test('locks that nobody flushes end: after some thousands they wait for the disk', async () => {
  const disk = hold();
  await lock('flushed');
  await vi.waitFor(() => expect(disk.held.length).toBe(1), { timeout: 60_000, interval: 5 });
  for (let index = 0; index < 1_999; index += 1) await lock(`late-${10_000 + index}`);
  const waiting = lock('one-too-many');
  expect(await isWaiting(waiting)).toBe(true);
  disk.release();
  expect(await waiting).toMatchObject({ ok: true });
});

test('after a crash the locks that were not on the disk are as if they had never been', async () => {
  const disk = hold();
  await lock('lost');
  const settled = settle('lost');
  expect(await isWaiting(settled)).toBe(true);
  const copy = newDataDirectory();
  cpSync(dataDir, copy, { recursive: true });
  const other = await openDatabase({ dataDir: copy });
  const found = await createLedger({ database: other });
  expect(await found.find('lost')).toBe(null);
  expect(await found.balance('escrow:a')).toEqual({ available: 1_000_000n, locked: 0n });
  expect((await audit(other)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await found.close();
  await other.close();
  rmSync(copy, { recursive: true });
  disk.release();
  expect(await settled).toMatchObject({ ok: true });
});

const head = () => (database.engine === 'sqlite' ? database.log.head.n : 0);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('a lock that comes during a long flush is written after it, without anything that follows', async () => {
  const disk = hold();
  await lock('1-flushed');
  await vi.waitFor(() => expect(disk.held.length).toBe(1), { timeout: 60_000, interval: 5 });
  await lock('2-late');
  // Its time passes while the disk is held up.
  await pause(250);
  const before = head();
  disk.release();
  await vi.waitFor(() => expect(head()).toBe(before + 2), { timeout: 60_000, interval: 5 });
});

test('the end of the ledger during a flush writes the locks that came meanwhile', async () => {
  const disk = hold();
  await lock('1-flushed');
  await vi.waitFor(() => expect(disk.held.length).toBe(1), { timeout: 60_000, interval: 5 });
  await lock('2-late');
  const closed = ledger.close();
  await pause(250);
  disk.release();
  await closed;
  ledger = await createLedger({ database });
  expect(await ledger.find('2-late')).toMatchObject({ state: 'held' });
});

test('a database that is closed while a settlement is written keeps it', async () => {
  await lock('last');
  const disk = hold();
  const settled = settle('last');
  await vi.waitFor(() => expect(disk.held.length).toBe(1), { timeout: 60_000, interval: 5 });
  const closed = database.close();
  await pause(20);
  disk.release();
  expect(await settled).toMatchObject({ ok: true });
  await closed;
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  expect(await ledger.find('last')).toMatchObject({ state: 'settled' });
  expect(await failing()).toEqual([]);
});

test('what waits for rows is answered if the database is closed meanwhile', async () => {
  if (database.engine !== 'sqlite') return;
  const read = Promise.withResolvers<void>();
  const real = database.queryLog;
  vi.spyOn(database, 'queryLog').mockImplementation((...args) => read.promise.then(() => real(...args)));
  const waiting = [credit('one', 5n), credit('two', 5n)];
  await pause(20);
  await database.close();
  read.resolve();
  for (const each of waiting) await expect(each).rejects.toThrow(LedgerUnavailable);
  await ledger.close();
  vi.restoreAllMocks();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  expect(await ledger.balance('escrow:a')).toEqual({ available: 1_000_000n, locked: 0n });
});

test('operations whose rows are read together see what those before them have done', async () => {
  for (const id of ['kept-1', 'kept-2', 'kept-3']) {
    await lock(id);
    await ledger.keep(id, Date.now() + 900_000);
  }
  await ledger.close();
  await database.close();
  // Nothing is in memory now.
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  const results = await Promise.all([
    settle('kept-1'),
    settle('kept-1'),
    ledger.release({ id: 'kept-1', detail: '{}' }),
    lock('new'),
    lock('new'),
    settle('new'),
    settle('new'),
    lock('new'),
    credit('same', 5n),
    credit('same', 5n),
    ledger.release({ id: 'kept-2', detail: '{}' }),
    settle('kept-2'),
    settle('kept-3'),
  ]);
  expect(results.map((result) => (result.ok ? 'ok' : result.reason))).toEqual([
    'ok',
    'already_resolved',
    'already_resolved',
    'ok',
    'duplicate',
    'ok',
    'already_resolved',
    'duplicate',
    'ok',
    'duplicate',
    'ok',
    'already_resolved',
    'ok',
  ]);
  expect(await ledger.balance('escrow:a')).toEqual({ available: 1_000_005n - 21n, locked: 0n });
  expect(await failing()).toEqual([]);
});

test('a parent and its children whose rows are read together agree', async () => {
  await ledger.lock({
    id: 'run',
    account: 'a',
    amount: 500n,
    lendable: 400n,
    prices: [CRASH_PRICE.id],
    expiresAt: Date.now() + 600_000,
    detail: '{}',
  });
  await lock('run-1', 'run');
  for (const id of ['run', 'run-1']) await ledger.keep(id, Date.now() + 900_000);
  await ledger.close();
  await database.close();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  const results = await Promise.all([
    lock('run-2', 'run'),
    settle('run-1'),
    lock('run-3', 'run'),
    lock('run-4', 'run'),
    lock('run-5', 'run'),
    settle('run-2'),
    settle('run'),
    settle('run-3'),
  ]);
  expect(results.map((result) => (result.ok ? 'ok' : result.reason))).toEqual([
    'ok',
    'ok',
    'ok',
    'ok',
    'parent_exhausted',
    'ok',
    'ok',
    'ok',
  ]);
  await ledger.release({ id: 'run-4', detail: '{}' });
  expect(await ledger.balance('escrow:a')).toEqual({ available: 1_000_000n - 28n, locked: 0n });
  expect(await failing()).toEqual([]);
});

import fs from 'node:fs';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { LedgerUnavailable, type Ledger } from '#billing';
import { WAITING_MAX } from '../../src/billing/ledger/group-commit.ts';
import { openDatabase, type OpenDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { lateEnds } from '../support/flush-modes.ts';
import { newDataDirectory } from '../support/data-directory.ts';

let dataDir: string;
let database: OpenDatabase;
let ledger: Ledger;
beforeEach(async () => {
  dataDir = newDataDirectory();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await credit('fund', 1_000n);
  expect(await lock('held', 100n)).toEqual({ ok: true, available: 900n });
  // What reads the tables waits until the lock is on the disk.
  expect(await ledger.find('held')).toMatchObject({ state: 'held' });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await ledger.close();
  await database.close();
  rmSync(dataDir, { recursive: true });
});

const credit = (id: string, amount: bigint) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount, memo: '' });
const lock = (id: string, amount: bigint) =>
  ledger.lock({ id, account: 'a', amount, prices: [CRASH_PRICE.id], expiresAt: Date.now() + 600_000, detail: '{}' });
const settle = (id: string, charge: bigint) =>
  ledger.settle({
    id,
    charge,
    price: CRASH_PRICE.id,
    provider: 'p',
    draw: false,
    feeBps: 0,
    usage: `{"call":${charge}}`,
    detail: '{}',
  });

const failure = (code: string) => Object.assign(new Error(`${code}: injected`), { code });
type Done = (error: Error | null, count?: number) => void;

/** Whether an open file is a segment of this ledger. Loggers of earlier test files write in this process too. */
function isSegment(file: unknown): boolean {
  const folder = join(dataDir, 'ledger');
  const { dev, ino } = fs.fstatSync(file as number);
  return readdirSync(folder)
    .map((name) => fs.statSync(join(folder, name)))
    .some((segment) => segment.ino === ino && segment.dev === dev);
}

/** The next time that a segment is cut fails. */
function failCut(error: Error): void {
  const real = fs.ftruncate as (...args: unknown[]) => void;
  let isLeft = true;
  vi.spyOn(fs, 'ftruncate').mockImplementation((...args: unknown[]) => {
    if (!isLeft || !isSegment(args[0])) return real(...args);
    isLeft = false;
    (args.at(-1) as Done)(error);
  });
}

type Write = (file: number, bytes: Buffer, from: number, count: number, ...rest: unknown[]) => void;

/** Replaces the writes of records to segments. */
function replaceWrites(write: (real: Write) => Write): void {
  const real = fs.write as unknown as Write;
  const replaced = write(real);
  vi.spyOn(fs, 'write').mockImplementation(((...args: Parameters<Write>) =>
    isSegment(args[0]) && args[1][0] !== 0 ? replaced(...args) : real(...args)) as never);
}

/** The flush of the next record fails after it was written; `first` happens before. */
function failFlush(error: Error, first?: () => void): void {
  let isLeft = true;
  replaceWrites((real) => (...args) => {
    if (!isLeft) return real(...args);
    isLeft = false;
    first?.();
    real(...(args.slice(0, -1) as Parameters<Write>), () => (args.at(-1) as Done)(error));
  });
}

/** What another process would find now, as after a crash. */
async function foundAfterCrash(): Promise<bigint> {
  const copy = newDataDirectory();
  cpSync(dataDir, copy, { recursive: true });
  const other = await openDatabase({ dataDir: copy });
  const found = (await (await createLedger({ database: other })).balance('escrow:a'))!.available;
  expect((await audit(other)).checks.filter(({ ok }) => !ok)).toEqual([]);
  await other.close();
  rmSync(copy, { recursive: true });
  return found;
}

async function restart(): Promise<void> {
  await ledger.close();
  await database.close();
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
}

const failing = async () => (await audit(database)).checks.filter(({ ok }) => !ok);
const segments = () => readdirSync(join(dataDir, 'ledger')).length;

test('a flush that fails is not trusted: the record is written once more, to a new segment', async () => {
  failFlush(failure('EIO'));
  expect(await credit('again', 5n)).toMatchObject({ ok: true });
  expect(segments()).toBe(2);
  expect(await ledger.balance('escrow:a')).toEqual({ available: 905n, locked: 100n });
  expect(await credit('again', 5n)).toMatchObject({ reason: 'duplicate' });
  expect(await failing()).toEqual([]);
  await restart();
  expect(await ledger.balance('escrow:a')).toEqual({ available: 905n, locked: 100n });
  expect(await failing()).toEqual([]);
});

test('where it cannot be cut either, the next segment says where it ends', async () => {
  failFlush(failure('EIO'));
  failCut(failure('EIO'));
  expect(await lock('second', 50n)).toEqual({ ok: true, available: 850n });
  expect(await settle('second', 20n)).toMatchObject({ ok: true, charged: 20n });
  expect(await foundAfterCrash()).toBe(880n);
  expect(await failing()).toEqual([]);
});

test('a record of which only a part could be written is not there', async () => {
  let times = 0;
  const failed = Promise.withResolvers<void>();
  replaceWrites((real) => (file, bytes, from, count, ...rest) => {
    times += 1;
    if (times === 1) return real(file, bytes, from, 7, ...rest);
    if (times > 2) return real(file, bytes, from, count, ...rest);
    (rest.at(-1) as Done)(failure('EIO'));
    failed.resolve();
  });
  const settled = settle('held', 60n);
  await failed.promise;
  expect(await foundAfterCrash()).toBe(900n);
  expect(await settled).toMatchObject({ ok: true, charged: 60n });
  expect(await foundAfterCrash()).toBe(940n);
  expect(await failing()).toEqual([]);
});

/** Whether a lock that holds nothing is made. */
const isTaken = (id: string): Promise<boolean> =>
  lock(id, 0n).then(
    () => true,
    () => false,
  );

/** Writes to segments fail as long as the disk is full. */
function fillDisk() {
  const asked = Promise.withResolvers<void>();
  const disk = { isFull: true, asked: asked.promise };
  replaceWrites((real) => (...args) => {
    if (!disk.isFull) return real(...args);
    asked.resolve();
    (args.at(-1) as Done)(failure('ENOSPC'));
  });
  return disk;
}

test('on a full disk new calls are refused at once, and what was done is settled when there is room', async () => {
  const disk = fillDisk();
  const settled = settle('held', 60n);
  await disk.asked;
  // The ledger hears of it some turns of the event loop later.
  for (let turn = 0; turn < 1_000 && (await isTaken(`free-${turn}`)); turn += 1) await setImmediate();
  for (const id of ['one', 'two', 'three'])
    await expect(lock(id, 10n)).rejects.toMatchObject({ name: 'LedgerUnavailable', cause: { full: true } });
  expect(await foundAfterCrash()).toBe(900n);
  disk.isFull = false;
  expect(await settled).toMatchObject({ ok: true, charged: 60n });
  expect(await lock('one', 10n)).toEqual({ ok: true, available: 930n });
  expect(await failing()).toEqual([]);
  await restart();
  expect(await ledger.balance('escrow:a')).toEqual({ available: 930n, locked: 10n });
});

test('a transfer that is told as unavailable on a full disk is made once when there is room, or by its repetition', async () => {
  const disk = fillDisk();
  await expect(credit('more', 5n)).rejects.toThrow(LedgerUnavailable);
  disk.isFull = false;
  await vi.waitFor(async () => expect(await credit('more', 5n)).toMatchObject({ reason: 'duplicate' }), {
    timeout: 60_000,
  });
  expect(await ledger.balance('escrow:a')).toEqual({ available: 905n, locked: 100n });
  expect(await failing()).toEqual([]);
});

test('a full disk does not hold up the end of the process', async () => {
  const disk = fillDisk();
  expect(await lock('late', 10n)).toMatchObject({ ok: true });
  await disk.asked;
  await ledger.close();
  await database.close();
  disk.isFull = false;
  database = await openDatabase({ dataDir });
  ledger = await createLedger({ database });
  expect(await ledger.find('late')).toBe(null);
  expect(await failing()).toEqual([]);
});

test('the end of the process writes what was answered before, although the last attempt has failed', async () => {
  await ledger.close();
  ledger = lateEnds(await createLedger({ database, flushMs: 1_000 }));
  let isBroken = true;
  replaceWrites(
    (real) =>
      (...args) =>
        isBroken ? (args.at(-1) as Done)(failure('EIO')) : real(...args),
  );
  expect(await settle('held', 60n)).toMatchObject({ ok: true, charged: 60n });
  await vi.waitFor(() => expect(ledger.probe()).rejects.toThrow('EIO'), { timeout: 60_000 });
  isBroken = false;
  await restart();
  expect(await ledger.balance('escrow:a')).toEqual({ available: 940n, locked: 0n });
  expect(await failing()).toEqual([]);
});

test('where no segment can be begun nothing is answered as done, until one can', async () => {
  const folder = join(dataDir, 'ledger');
  failFlush(failure('EIO'), () => fs.renameSync(folder, `${folder}-gone`));
  const removed = vi.spyOn(fs.promises, 'rm');
  const begun = () => removed.mock.calls.filter(([path]) => String(path).startsWith(folder)).length;
  let isDone = false;
  const waiting = settle('held', 60n).finally(() => (isDone = true));
  // The second attempt to begin one: the first has failed.
  await vi.waitFor(() => expect(begun()).toBeGreaterThan(1), { timeout: 60_000 });
  expect(isDone).toBe(false);
  fs.renameSync(`${folder}-gone`, folder);
  expect(await waiting).toMatchObject({ ok: true, charged: 60n });
  expect(await ledger.balance('escrow:a')).toEqual({ available: 940n, locked: 0n });
  expect(await failing()).toEqual([]);
});

test('more than so many operations do not wait for a log that cannot be written, but the end of a call does', async () => {
  let isBroken = true;
  replaceWrites((real) => (...args) => {
    if (!isBroken) return real(...args);
    (args.at(-1) as Done)(failure('EIO'));
  });
  const first = credit('first', 1n);
  // Until the ledger has heard of it, locks are answered at once.
  await vi.waitFor(() => expect(ledger.probe()).rejects.toThrow('EIO'), { timeout: 60_000 });
  const waiting = Array.from({ length: WAITING_MAX }, (_, at) => lock(`waits-${at}`, 0n));
  await expect(lock('one-more', 0n)).rejects.toThrow('Too many operations wait for the ledger');
  const settled = settle('held', 40n);
  isBroken = false;
  expect(await settled).toMatchObject({ ok: true });
  // On a slow machine their time may be over. Only the end of a call waits longer.
  await Promise.allSettled([first, ...waiting]);
  expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
});

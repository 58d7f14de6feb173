import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { audit, compareJournal, createLedger, journalHead, EMBEDDED_CHAIN } from '#billing/compose';
import { escrowOf, type Ledger, registeredArchives } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { makeBackup, restoreBackup } from '#store/backup';
import {
  aDay,
  archiveBefore,
  archiveFolder,
  createClock,
  dayAt,
  faults,
  lock,
  openBooks,
  type Clock,
} from '../../support/archived-books.ts';
import { emptyDataDirectory, newDataDirectory } from '../../support/data-directory.ts';

const VERSION = '0.1.0';
let place: ReturnType<typeof archiveFolder>;
let dataDir: string;
let clock: Clock;
let database: OpenDatabase;
let ledger: Ledger;

beforeEach(async () => {
  place = archiveFolder();
  dataDir = newDataDirectory();
  clock = createClock();
  database = await openDatabase({ dataDir });
  ledger = await openBooks(database, clock);
});
afterEach(async () => {
  expect(await faults(database, [place.folder])).toEqual([]);
  await close();
  rmSync(dataDir, { recursive: true });
  place.remove();
});

async function close(): Promise<void> {
  await ledger.close();
  await database.close();
}

async function open(options = {}): Promise<void> {
  database = await openDatabase({ dataDir, ...options });
  ledger = await createLedger({ database, now: clock.now });
}

const backUp = (name: string) =>
  makeBackup(
    { dataDir, databaseUrl: null, identity: null, media: false, filesOnly: false, version: VERSION, env: {} },
    join(place.folder, name),
  );

/** The books go on from a backup. */
async function restore(name: string): Promise<void> {
  await close();
  rmSync(dataDir, { recursive: true });
  dataDir = emptyDataDirectory();
  const to = { dataDir, databaseUrl: null, identity: '00'.repeat(32), version: VERSION, env: {} };
  await (await restoreBackup(to, join(place.folder, name))).finish();
  await open();
}

test('a backup from before an archive has its calls, and gives the same archive again', async () => {
  const ids = await aDay(ledger, clock, 0);
  await aDay(ledger, clock, 40);
  await backUp('before.tar');
  clock.at = dayAt(80);
  const first = await archiveBefore(database, place.folder, clock, 30);
  await restore('before.tar');
  expect(await registeredArchives(database.query)).toEqual([]);
  expect((await ledger.find(ids[0]!))?.state).toBe('settled');
  expect(await faults(database)).toEqual([]);
  const again = await archiveBefore(database, place.folder, clock, 30);
  expect(again.archive!.sha256).toBe(first.archive!.sha256);
});

test('an archive of books that went on differently is not overwritten', async () => {
  await aDay(ledger, clock, 0);
  await backUp('before.tar');
  await aDay(ledger, clock, 1);
  clock.at = dayAt(80);
  await archiveBefore(database, place.folder, clock, 30);
  await restore('before.tar');
  await aDay(ledger, clock, 2);
  clock.at = dayAt(80);
  await expect(archiveBefore(database, place.folder, clock, 30)).rejects.toThrow(
    'is another archive of the same days. It was made before a backup was restored',
  );
  expect(await registeredArchives(database.query)).toEqual([]);
});

test('a backup from after an archive knows it, and goes on without its file', async () => {
  const ids = await aDay(ledger, clock, 0);
  await aDay(ledger, clock, 40);
  clock.at = dayAt(80);
  const { path } = await archiveBefore(database, place.folder, clock, 30);
  await backUp('after.tar');
  await restore('after.tar');
  const file = `${path}.away`;
  renameSync(path, file);
  const { ok, checks } = await audit(database, { overdueMs: null });
  expect(ok).toBe(true);
  expect(checks.find(({ name }) => name === 'archives')!.detail).toContain('not at hand');
  renameSync(file, path);
  expect(await ledger.find(ids[0]!)).toBeNull();
  await expect(lock(ledger, clock, 'ada', {}, ids[0])).rejects.toThrow('duplicate');
  await aDay(ledger, clock, 81);
  clock.at = dayAt(140);
  expect((await archiveBefore(database, place.folder, clock, 60)).archive!.header.number).toBe(2);
});

test('a log that is lost after an archive is begun anew behind it, and archived in its turn', async () => {
  await aDay(ledger, clock, 0);
  clock.at = dayAt(20);
  const run = await lock(ledger, clock, 'ada', { lendable: 500_000n, expiresAt: dayAt(1_000) });
  const under = await lock(ledger, clock, 'ada', { amount: 1_000n, parent: run, budgets: undefined });
  await ledger.release({ id: under, detail: '{}' });
  await aDay(ledger, clock, 40);
  clock.at = dayAt(80);
  await archiveBefore(database, place.folder, clock, 30);
  const balance = await ledger.balance(escrowOf('ada'));
  await close();
  rmSync(join(dataDir, 'ledger'), { recursive: true });
  await open({ withoutLog: true });
  expect(await faults(database, [place.folder])).toEqual([]);
  expect(await ledger.balance(escrowOf('ada'))).toEqual(balance);
  await aDay(ledger, clock, 81);
  await ledger.release({ id: run, detail: '{}' });
  expect(await faults(database, [place.folder])).toEqual([]);
  clock.at = dayAt(140);
  const { archive } = await archiveBefore(database, place.folder, clock, 60);
  expect(archive!.sums.calls).toBe(9);
  await aDay(ledger, clock, 141);
});

test('files of the log are removed when nobody reads them any more', async () => {
  if (database.engine !== 'sqlite') throw new Error('this is about the embedded database');
  const order: string[] = [];
  const { promise, resolve: endSnapshot } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const snapshot = database
    .snapshot(null, async () => {
      begun.resolve();
      await promise;
    })
    .then(() => order.push('the snapshot ends'));
  await begun.promise;
  const dropped = database.dropLog(0).then(() => order.push('files are removed'));
  // A snapshot that begins now does not hold it up, because it knows of the archive.
  await database.snapshot(null, async () => order.push('a later snapshot'));
  endSnapshot();
  await Promise.all([snapshot, dropped]);
  expect(order).toEqual(['a later snapshot', 'the snapshot ends', 'files are removed']);
});

test('the head of the journal that was noted before an archive is still known', async () => {
  await aDay(ledger, clock, 0);
  const old = await journalHead(database, EMBEDDED_CHAIN);
  await aDay(ledger, clock, 40);
  clock.at = dayAt(80);
  await archiveBefore(database, place.folder, clock, 30);
  expect(await compareJournal(database, old)).toEqual({ state: 'there' });
  expect(await compareJournal(database, { ...old, hash: '1'.repeat(64) })).toEqual({ state: 'other' });
  const head = await journalHead(database, EMBEDDED_CHAIN);
  expect(await compareJournal(database, head)).toEqual({ state: 'there' });
  expect(await compareJournal(database, { ...head, n: head.n + 9 })).toMatchObject({ state: 'behind' });
  expect(readdirSync(place.folder)).toHaveLength(1);
});

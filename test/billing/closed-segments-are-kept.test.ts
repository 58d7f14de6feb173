import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { audit as Audit, createLedger as CreateLedger } from '#billing/compose';
import type { Ledger } from '#billing';
import { createMutant, type Mutant } from '../support/mutant.ts';
import { emptyDataDirectory, newDataDirectory } from '../support/data-directory.ts';

let mutant: Mutant;
let store: typeof import('#store');
let backups: typeof import('#store/backup');
let frames: typeof import('../../src/foundation/store/log/frames.ts');
let billing: { createLedger: typeof CreateLedger; audit: typeof Audit };
/** Segments of a few records, so that there are many; frames and reads that hold no whole record. */
beforeAll(async () => {
  mutant = createMutant([
    {
      file: 'src/foundation/store/log/segments.ts',
      find: 'SEGMENT_BYTES = 64 * 1024 * 1024',
      put: 'SEGMENT_BYTES = 3_000',
    },
    { file: 'src/foundation/store/log/frames.ts', find: 'FRAME_BYTES = 1024 * 1024', put: 'FRAME_BYTES = 400' },
    { file: 'src/foundation/store/log/reader.ts', find: 'READ_BYTES = 1 << 20', put: 'READ_BYTES = 300' },
  ]);
  store = (await import(mutant.url('src/foundation/store/index.ts'))) as typeof store;
  backups = (await import(mutant.url('src/foundation/store/backup/index.ts'))) as typeof backups;
  frames = (await import(mutant.url('src/foundation/store/log/frames.ts'))) as typeof frames;
  billing = (await import(mutant.url('src/billing/compose.ts'))) as typeof billing;
});
afterAll(() => mutant.dispose());

const credit = (ledger: Ledger, id: string) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount: 1n, memo: 'x'.repeat(200) });
const segments = (dataDir: string) => readdirSync(join(dataDir, 'ledger')).sort();

test('closed segments are compressed, and the audit, a restart and a copy read them', async () => {
  const dataDir = newDataDirectory();
  const database = await store.openDatabase({ dataDir });
  const ledger = await billing.createLedger({ database });
  for (let turn = 0; turn < 60; turn += 1) expect(await credit(ledger, `${turn}`)).toMatchObject({ ok: true });
  const isPlain = (name: string) => name.endsWith('.log');
  await expect.poll(() => segments(dataDir).filter(isPlain), { timeout: 60_000 }).toHaveLength(1);
  expect(segments(dataDir).filter((name) => name.endsWith('.log.zst')).length).toBeGreaterThan(3);
  expect((await billing.audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);

  // A copy while it runs: the tables first, then the log, as the documentation says.
  const copy = newDataDirectory();
  await database.query({ name: 'back-up', text: `VACUUM INTO '${join(copy, 'copied.db')}'` });
  expect(await credit(ledger, 'after the tables')).toMatchObject({ ok: true });
  cpSync(join(dataDir, 'ledger'), join(copy, 'ledger'), { recursive: true });
  cpSync(join(copy, 'copied.db'), join(copy, 'tollgate.db'));
  expect(await credit(ledger, 'after the copy')).toMatchObject({ ok: true });
  await ledger.close();
  await database.close();

  // Earlier versions compressed a whole file as one frame.
  const old = join(
    copy,
    'ledger',
    segments(copy).find((name) => name.endsWith('.zst'))!,
  );
  const { read, byteLength } = frames.openFrames(old);
  const plain = read(0, byteLength);
  expect(plain.byteLength).toBeGreaterThan(3_000);
  writeFileSync(old, zstdCompressSync(plain));

  const restored = await store.openDatabase({ dataDir: copy });
  const again = await billing.createLedger({ database: restored });
  expect(await again.balance('escrow:a')).toEqual({ available: 61n, locked: 0n });
  expect(await credit(again, '3')).toMatchObject({ reason: 'duplicate' });
  expect(await credit(again, 'after the tables')).toMatchObject({ reason: 'duplicate' });
  expect(await credit(again, 'after the copy')).toMatchObject({ ok: true });
  const report = await billing.audit(restored);
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(report.totals.operations).toBe(62);
  await restored.close();
  for (const folder of [dataDir, copy]) rmSync(folder, { recursive: true });
});

const BACKUPS = process.env['TOLLGATE_DEEP'] === '1' ? 100 : 4;

test('a backup has all that was acknowledged before it, and ends where it says, while files are closed', async () => {
  const dataDir = newDataDirectory();
  const folder = emptyDataDirectory();
  const database = await store.openDatabase({ dataDir });
  const ledger = await billing.createLedger({ database });
  const done: string[] = [];
  let stopping = false;
  const credits = (async () => {
    while (!stopping) {
      const id = `${done.length}`;
      expect(await credit(ledger, id)).toMatchObject({ ok: true });
      done.push(id);
    }
  })();
  const facts = { databaseUrl: null, identity: 'of a seed', media: true, version: '0.1.0', env: {} };
  await expect.poll(() => done.length).toBeGreaterThan(20);
  for (let round = 0; round < BACKUPS; round += 1) {
    const file = join(folder, `${round}.tar`);
    const target = join(folder, `${round}`);
    const before = done.length;
    const { record } = await backups.makeBackup({ ...facts, dataDir }, file);
    const restored = await backups.restoreBackup({ ...facts, dataDir: target }, file);
    await restored.finish();
    const again = await store.openDatabase({ dataDir: target });
    const { available } = (await (await billing.createLedger({ database: again })).balance('escrow:a'))!;
    expect(available).toBeGreaterThanOrEqual(BigInt(before));
    const report = await billing.audit(again);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(report.totals.operations).toBe(Number(available));
    const [head] = await again.query({ name: 'head', text: 'SELECT n, hash FROM ledger_log' });
    expect({ n: Number(head!['n']), hash: head!['hash'] }).toEqual(record);
    await again.close();
    for (const path of [file, target]) rmSync(path, { recursive: true });
  }
  stopping = true;
  await credits;
  expect(segments(dataDir).length).toBeGreaterThan(2);
  await ledger.close();
  await database.close();
  for (const path of [dataDir, folder]) rmSync(path, { recursive: true });
});

test('tables without the log that they have followed are refused', async () => {
  const dataDir = newDataDirectory();
  const database = await store.openDatabase({ dataDir });
  const ledger = await billing.createLedger({ database });
  for (let turn = 0; turn < 30; turn += 1) await credit(ledger, `${turn}`);
  await database.close();
  const [first] = segments(dataDir);
  // As it was written, and the compressed copy, which there may already be.
  for (const name of segments(dataDir).filter((each) => each.startsWith(first!.slice(0, 16))))
    rmSync(join(dataDir, 'ledger', name));
  // A start reads from where the tables are; the audit reads everything.
  const opened = await store.openDatabase({ dataDir });
  const { checks } = await billing.audit(opened);
  expect(checks.find(({ name }) => name === 'hash chains')).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/The log in .*ledger has no bytes 0 to \d+/),
  });
  await opened.close();
  rmSync(join(dataDir, 'ledger'), { recursive: true });
  await expect(store.openDatabase({ dataDir })).rejects.toThrow('The log of the ledger is gone');
  rmSync(dataDir, { recursive: true });
});

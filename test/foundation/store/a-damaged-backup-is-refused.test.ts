import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLedger } from '#billing/compose';
import { escrowOf, treasuryOf } from '#billing';
import { openDatabase } from '#store';
import { BackupError, checkBackup, makeBackup, restoreBackup } from '#store/backup';
import { createArchive } from '../../../src/foundation/store/backup/archive.ts';
import { sealManifest } from '../../../src/foundation/store/backup/manifest.ts';
import { emptyDataDirectory, newDataDirectory } from '../../support/data-directory.ts';

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 2_000 : 60;
const VERSION = '0.1.0';
const FACTS = { databaseUrl: null, identity: null, version: VERSION, env: {}, media: true };

let folder: string;
let dataDir: string;
let file: string;
let whole: Buffer;
beforeAll(async () => {
  folder = emptyDataDirectory();
  dataDir = newDataDirectory();
  file = join(folder, 'whole.tar');
  const database = await openDatabase({ dataDir });
  const ledger = await createLedger({ database });
  for (const id of ['a', 'b', 'c'])
    await ledger.transfer({ id, from: treasuryOf('test'), to: escrowOf(id), amount: 5n, memo: '' });
  await makeBackup({ ...FACTS, dataDir }, file);
  await ledger.close();
  await database.close();
  whole = readFileSync(file);
});
afterAll(() => {
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true });
});

/** Its message, or what was not refused. */
const refusal = async (bytes: Buffer): Promise<string> => {
  const path = join(folder, 'changed.tar');
  writeFileSync(path, bytes);
  return checkBackup(path, VERSION).then(
    () => 'taken',
    (error: unknown) => (error instanceof BackupError ? error.message : `other: ${String(error)}`),
  );
};

it('is taken while it is whole', async () => {
  expect(await refusal(whole)).toBe('taken');
  expect(statSync(file).mode & 0o077).toBe(0);
  expect(existsSync(`${file}.drafts`) || existsSync(`${file}.part`)).toBe(false);
});

it('is refused when one byte of it is another', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const at = Math.floor(Math.random() * whole.byteLength);
    const changed = Buffer.from(whole);
    changed[at]! ^= 1 << Math.floor(Math.random() * 8);
    expect(await refusal(changed), `byte ${at}`).toMatch(/is not a whole backup|is not a backup of tollgate/);
  }
});

it('is refused when its end is missing, wherever it ends', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const length = Math.floor(Math.random() * whole.byteLength);
    expect(await refusal(whole.subarray(0, length)), `${length} bytes`).toContain('is not a whole backup');
  }
  expect(await refusal(whole.subarray(0, -1))).toContain('its end is missing');
  expect(await refusal(Buffer.concat([whole, Buffer.from('x')]))).toContain('something follows its end');
});

it('leaves an empty place empty when it is refused', async () => {
  const path = join(folder, 'cut.tar');
  writeFileSync(path, whole.subarray(0, -600));
  const target = join(folder, 'target');
  await expect(restoreBackup({ ...FACTS, dataDir: target }, path)).rejects.toThrow('is not a whole backup');
  expect(existsSync(join(target, 'tollgate.db')) || existsSync(join(target, 'restoring'))).toBe(false);
});

it('of a newer tollgate is refused with the version that it needs', async () => {
  const path = join(folder, 'newer.tar');
  const archive = await createArchive(path, 0);
  const { text, digest } = sealManifest({
    format: 1,
    tollgate: '7.8.9',
    at: '2030-01-01T00:00:00.000Z',
    engine: 'embedded',
    migrations: ['0001_ledger', '9999_future'],
    record: null,
    identity: null,
    mediaMissing: null,
    files: [],
  });
  for (const [name, content] of [
    ['manifest.json', text],
    ['manifest.sha256', digest],
  ] as const)
    await archive.add({ name, bytes: content.length, content: [Buffer.from(content)] });
  await archive.finish();
  await archive.close();
  await expect(checkBackup(path, VERSION)).rejects.toThrow(
    /made by tollgate 7\.8\.9, whose database has 9999_future.*Restore it with tollgate 7\.8\.9 or newer/s,
  );
});

it('with names that lead elsewhere writes nothing', async () => {
  const path = join(folder, 'names.tar');
  const archive = await createArchive(path, 0);
  await archive.add({ name: '../evil', bytes: 1, content: [Buffer.from('x')] });
  await archive.finish();
  await archive.close();
  const target = join(folder, 'names');
  await expect(restoreBackup({ ...FACTS, dataDir: target }, path)).rejects.toThrow('it has a file "../evil"');
  expect(existsSync(join(folder, 'evil'))).toBe(false);
});

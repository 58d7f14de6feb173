import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkBackup, restoreBackup } from '#store/backup';
import { createArchive, readArchive } from '../../../src/foundation/store/backup/archive.ts';
import { emptyDataDirectory } from '../../support/data-directory.ts';

/* The form of a backup's file: other programs read it, and backups that were made before are restored. */

/** A backup with a text instead of tables, as it was written on 2026-11-25. Its bytes are never made again. */
const MADE_BEFORE =
  'H4sIAAAAAAACA+2YyW7bMBCGffZTEDw77gx36R1666lFUXAZOipkGZCUQxDk3QtJSbM4aA9BlQbhdxlpRIq/liF/cDy17cGPtE9h868AADAAc4' +
  'TziMKqDWoJIEApAxtAQFQbBpsVuBpG329glbH+Q0YfWhpYCSW8u7ApvJqW0oH6T/CMfXs6rDb/T8dP539UgGX+X4O+8KFpEnVjM17vfw6n7m38' +
  'HwCa5/5Pgy31vwY3fCBKvOYA/HZb1sOPxtF3TaZhfMP6R2n18/pXVpf6X6X+t4zxfOqPfuQ1w910Ot7tCfCacdjjHvicnltwAcJcIF4I/AKyBq' +
  'gB9gDwdWlD3aHp5o50DJQSpSV/bA69H5tTN/CafdsyxhifPv2PxX/yLWPf54Y9xVOfeM1ulkYdrxnsluNLP1zOml7JNNrtPNr96sdr1l217SKV' +
  'UuM/N8PQdIfH+dy09KB+kTcJ9Mf5eceHjRS+u78Yrse5jwX4nRsuvdBm6lJZQwGjI3SYc8jGyOhcwkQ6gxSVVsmTkagNWEE5ozMuG6cxCWEgJT' +
  '7f8nb3sqA/OPtzgRrFCwKzAC0AImVvwFhLIgoCp3XQIKXRgiBKJ1U2zicVQkWqEgRBRYSc3V8EPrEe55JQvaCIvAlRUWWiNkRSBQ8xBaMiRvKU' +
  'McTKxFhpnbM3LigtqhC9NhQzWaPMnaLpd9uW5e7x/L+84zfxfyjgzP9h8X+rEFxAVNLkLKS0OYEOwVuvFYoowImQA1TGhkomH0hHwEjWKWetq3' +
  'IlNGNPHEQpqUKhUHgn/ALS2V6xABwAAA==';
const BLOCK = 512;
const NAMES = ['tollgate.db', 'ledger/0000000000000000.log', 'identity.json', 'manifest.json', 'manifest.sha256'];

let folder: string;
let before: Buffer;
beforeAll(() => {
  folder = emptyDataDirectory();
  before = gunzipSync(Buffer.from(MADE_BEFORE, 'base64'));
  writeFileSync(join(folder, 'before.tar'), before);
});
afterAll(() => rmSync(folder, { recursive: true }));

it('is restored if an earlier version made it', async () => {
  const dataDir = join(folder, 'restored');
  const place = { databaseUrl: null, dataDir, identity: null, version: '0.1.0', env: {} };
  await (await restoreBackup(place, join(folder, 'before.tar'))).finish();
  expect(readFileSync(join(dataDir, 'tollgate.db'), 'utf8')).toBe('tables '.repeat(100));
  expect(readFileSync(join(dataDir, NAMES[1]!), 'utf8')).toBe('r'.repeat(512));
  expect(readFileSync(join(dataDir, 'identity.json'), 'utf8')).toBe('{"seed":"00"}\n');
});

it('has the same bytes as those of earlier versions', async () => {
  const path = join(folder, 'again.tar');
  const archive = await createArchive(path, Date.parse('2026-11-21T03:00:00Z'));
  const contents = new Map<string, Buffer[]>();
  await readArchive(join(folder, 'before.tar'), (name) => {
    const parts: Buffer[] = [];
    contents.set(name, parts);
    return { write: (part) => void parts.push(part), end: () => {} };
  });
  for (const [name, parts] of contents)
    await archive.add({ name, bytes: Buffer.concat(parts).byteLength, content: parts });
  await archive.finish();
  await archive.close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

it('is listed and unpacked by tar', () => {
  const list = execFileSync('tar', ['-tf', join(folder, 'before.tar')], { encoding: 'utf8' });
  expect(list.trim().split('\n')).toEqual(NAMES);
  execFileSync('tar', ['-xf', join(folder, 'before.tar'), '-C', folder, 'tollgate.db']);
  expect(readFileSync(join(folder, 'tollgate.db'), 'utf8')).toBe('tables '.repeat(100));
});

/** Its message, or `taken`. */
const refusal = async (bytes: Buffer): Promise<string> => {
  const path = join(folder, 'changed.tar');
  writeFileSync(path, bytes);
  return checkBackup(path, '0.1.0').then(
    () => 'taken',
    (error: unknown) => String(error),
  );
};

it('is refused with a change of any byte of a header, or of what fills the last block of a file', async () => {
  // The header and the content of the first file have 512 and 700 bytes. 324 empty bytes follow.
  for (const from of [0, BLOCK + 700])
    for (let at = from; at < from + (from === 0 ? BLOCK : 324); at += 1) {
      const changed = Buffer.from(before);
      changed[at]! ^= 1;
      expect(await refusal(changed), `byte ${at}`).toContain('is not a whole backup');
    }
});

/** The first header, changed, with a checksum that fits. */
function withHeader(change: (header: Buffer) => void): Buffer {
  const bytes = Buffer.from(before);
  const header = bytes.subarray(0, BLOCK);
  change(header);
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}

it('is refused with a link, a folder, or a name of another form, also if the checksum fits', async () => {
  expect(await refusal(withHeader(() => {}))).toBe('taken');
  const changes: Readonly<Record<string, (header: Buffer) => void>> = {
    'a link': (header) => header.write('2', 156),
    'a folder': (header) => header.write('5', 156),
    'a header for the next file': (header) => header.write('x', 156),
    'a target of a link': (header) => header.write('/etc/passwd', 157),
    'a folder before the name': (header) => header.write('../..', 345),
    'a size below zero': (header) => header.fill(0xff, 124, 136),
    'a size that is no number': (header) => header.write('x'.repeat(11), 124),
  };
  for (const [what, change] of Object.entries(changes))
    expect(await refusal(withHeader(change)), what).toContain('no file of a backup begins there');
});

it('can have a file of more than 8 GiB', async () => {
  const path = join(folder, 'large.tar');
  const archive = await createArchive(path, 0);
  const large = { name: 'tollgate.db', bytes: 3 * 2 ** 33 + 1, content: [] };
  await expect(archive.add(large)).rejects.toThrow('changed while it was copied');
  await archive.close();
  const sizes: number[] = [];
  const reading = readArchive(path, (_, bytes) => {
    sizes.push(bytes);
    return null;
  });
  await expect(reading).rejects.toThrow('it ends inside tollgate.db');
  expect(sizes).toEqual([large.bytes]);
  // tar lists the file before it says that its content is missing.
  expect(spawnSync('tar', ['-tvf', path], { encoding: 'utf8' }).stdout).toContain(`${large.bytes}`);
});

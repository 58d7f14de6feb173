import { expect, test } from 'vitest';
import type { ArchivedFile } from '../../../src/foundation/store/backup/archive.ts';
import {
  checkManifest,
  DIGEST,
  MANIFEST,
  sealManifest,
  tailSink,
} from '../../../src/foundation/store/backup/manifest.ts';

/*
 * A gateway of many images and videos has a backup of hundreds of thousands of files. Their list is long, and can be
 * read and compared all the same.
 */

const FILES = 400_000;
const MOST_BEFORE = 64 * 1024 * 1024;

const fileOf = (index: number): ArchivedFile => {
  const id = index.toString(16).padStart(32, '0');
  return { name: `blobs/${id.slice(0, 2)}/${id}`, bytes: index, sha256: id.padStart(64, 'f') };
};

test('a list of 400,000 files is read, and a file that differs is found', () => {
  const files = Array.from({ length: FILES }, (_, index) => fileOf(index));
  const { text, digest } = sealManifest({
    format: 1,
    tollgate: '1.0.0',
    at: '2026-11-23T00:00:00.000Z',
    engine: 'embedded',
    migrations: [],
    record: null,
    identity: null,
    mediaMissing: null,
    files,
  });
  const tail = new Map<string, string>();
  for (const [name, content] of [
    [MANIFEST, text],
    [DIGEST, digest],
  ] as const) {
    const bytes = Buffer.from(content);
    const sink = tailSink(tail, name, bytes.byteLength);
    sink.write(bytes);
    sink.end();
  }
  expect(Buffer.byteLength(text)).toBeGreaterThan(MOST_BEFORE);
  expect(checkManifest('b.tar', tail, files).files).toHaveLength(FILES);

  const { name, bytes, sha256 } = files.at(-1)!;
  for (const other of [
    { name, bytes: bytes + 1, sha256 },
    { name, bytes, sha256: '0'.repeat(64) },
    { name: 'blobs/holder', bytes, sha256 },
  ])
    expect(() => checkManifest('b.tar', tail, [...files.slice(0, -1), other])).toThrow(`${name} was changed`);
  expect(() => checkManifest('b.tar', tail, [...files, fileOf(FILES)])).toThrow('a file that its list does not name');
});

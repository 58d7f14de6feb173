import { mkdirSync, mkdtempSync, readFileSync, statSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { JournalLost, journalFile, openJournalFile, openJournaled } from '../../src/program/app/journal.ts';

// The file in the data directory that remembers how far the journal went.

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'tollgate-journal-head-'));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const place = () => ({ dataDir, databaseUrl: null, identitySeed: '07'.repeat(32), secondIdentitySeed: null });
const HEAD = { chain: 'embedded', n: 7, hash: 'ab'.repeat(32) };

describe('the file', () => {
  test('gives back what was written', async () => {
    const file = openJournalFile(place());
    expect(file.read()).toBeNull();
    await file.write(HEAD, 0);
    expect(file.read()).toEqual({ ...HEAD, at: '1970-01-01T00:00:00.000Z' });
  });

  test.each(['null', '5', '"text"', 'true', '[]', '', '{', '{"embedded":null}', '{"embedded":5}', '{"embedded":{}}'])(
    'is refused when it holds %j',
    async (text) => {
      writeFileSync(journalFile(dataDir), text);
      const file = openJournalFile(place());
      expect(() => file.read()).toThrow(JournalLost);
      expect(() => file.read()).toThrow(/tollgate restored --accept/);
    },
  );

  test('is durable with its name', async () => {
    const handle = await open(dataDir);
    const files = Object.getPrototypeOf(handle) as FileHandle;
    await handle.close();
    const synced: number[] = [];
    const sync = files.sync;
    const spy = vi.spyOn(files, 'sync').mockImplementation(async function (this: FileHandle) {
      synced.push((await this.stat()).ino);
      return sync.call(this);
    });
    try {
      await openJournalFile(place()).write(HEAD, 0);
    } finally {
      spy.mockRestore();
    }
    expect(synced).toEqual([statSync(journalFile(dataDir)).ino, statSync(dataDir).ino]);
  });
});

test('a write that failed is done again, also when no batch follows', async () => {
  await using opened = new AsyncDisposableStack();
  const warned = Promise.withResolvers<string>();
  const logger = { warn: (_fields: object, text: string) => warned.resolve(text) };
  const { journal } = await openJournaled({
    config: place(),
    logger,
    resources: opened,
    now: () => Date.parse('2030-01-01'),
  });
  const path = journalFile(dataDir);
  rmSync(path);
  mkdirSync(path);
  journal.noting(() => {})({ chain: 'embedded', size: 1, durationMs: 1 });
  expect(await warned.promise).toMatch(/cannot be written/);
  rmdirSync(path);
  await vi.waitFor(() => expect(readFileSync(path, 'utf8')).toContain('2030-01-01'), { timeout: 60_000 });
});

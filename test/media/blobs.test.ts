import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Blobs, createBlobs, openBlobFiles, removeOrphans, sourceOf } from '#tasks';
import { ENGINES, type OpenedEngine, openEngine } from '../support/engines.ts';

// Files of large results: written whole or not at all, by one at a time, read in ranges, and gone when they expire.

const HOUR_MS = 3_600_000;
const LEASE_MS = 1_000;
const LIMITS = {
  keepMs: 24 * HOUR_MS,
  bytesMax: 10_000,
  accountBytesMax: 5_000,
  fileBytesMax: 1_000,
  freeBytesMin: 0,
};

describe.each(ENGINES)('%s', (name) => {
  let engine: OpenedEngine;
  beforeAll(async () => {
    engine = await openEngine(name);
  });
  afterAll(() => engine.dispose());

  let made = 0;
  async function startStore() {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-blobs-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const files = await openBlobFiles(folder);
    let at = Date.now();
    const options = { database: engine.database, files, far: null, limits: LIMITS, now: () => at, leaseMs: LEASE_MS };
    const blobs: Blobs = createBlobs(options);
    const names = () =>
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name !== 'holder')
        .map((entry) => entry.name);
    return { folder, options, blobs, names, account: `account-${++made}`, pass: (ms: number) => (at += ms) };
  }
  const put = (blobs: Blobs, account: string, source: string, text: string) =>
    blobs.write({ source, account }, async (file) => {
      await file.write(Buffer.from(text));
      return { type: 'text/plain', notes: '{}' };
    });
  const textOf = async (blobs: Blobs, source: string, start: number, end: number) => {
    const [blob] = await blobs.find([source]);
    let text = '';
    for await (const chunk of await blobs.read(blob!, { start, end })) text += String(chunk);
    return text;
  };

  test('room that was taken is kept from others until its files are here, or it is given back', async () => {
    const { blobs, options, account, pass } = await startStore();
    const id = `room-${name}-${made}`;
    const expiresAt = options.now() + HOUR_MS;
    await blobs.takeRoom({ id, account, files: 3, expiresAt });
    await blobs.takeRoom({ id, account, files: 3, expiresAt });
    await blobs.admit(account, 2);
    await expect(blobs.admit(account, 3)).rejects.toThrow('use all of its space');
    await expect(blobs.takeRoom({ id: `${id}-2`, account, files: 3, expiresAt })).rejects.toThrow(
      'use all of its space',
    );
    await blobs.takeRoom({ id: `${id}-3`, account, files: 2, expiresAt });
    // Its room is there, although there is no other.
    const source = sourceOf(name, made, 'room');
    const stored = await blobs.write({ source, account, room: id }, async (file) => {
      await file.write(Buffer.from('a tollgate'));
      return { type: 'text/plain', notes: '{}' };
    });
    expect(stored).toMatchObject({ state: 'stored', bytes: 10 });
    await expect(put(blobs, account, sourceOf(name, made, 'more'), 'x')).rejects.toThrow('use all of its space');
    await blobs.giveRoomBack(id);
    await blobs.admit(account, 2);
    await expect(blobs.admit(account, 3)).rejects.toThrow('use all of its space');
    pass(HOUR_MS);
    await blobs.admit(account, 4);
    expect(await blobs.sweep(100)).toBeGreaterThan(0);
    await blobs.remove(stored!);
  });

  test('a file is there once it is whole, under a name that nobody chose', async () => {
    const { blobs, names, account } = await startStore();
    const source = sourceOf(name, made, 'whole');
    const stored = await put(blobs, account, source, 'a tollgate');
    expect(stored).toMatchObject({ account, state: 'stored', bytes: 10, type: 'text/plain' });
    expect(names()).toEqual([stored!.id]);
    expect(await textOf(blobs, source, 2, 5)).toBe('toll');
    expect(await put(blobs, account, source, 'another')).toBeNull();
    expect(await textOf(blobs, source, 0, 9)).toBe('a tollgate');
  });

  test('a write that fails leaves nothing, and can be tried again', async () => {
    const { blobs, names, account } = await startStore();
    const source = sourceOf(name, made, 'fails');
    await expect(
      blobs.write({ source, account }, async (file) => {
        await file.write(Buffer.from('half'));
        throw new Error('it broke');
      }),
    ).rejects.toThrow('it broke');
    await expect(put(blobs, account, source, 'x'.repeat(1_001))).rejects.toThrow('larger than 1000 bytes');
    expect([names(), await blobs.find([source])]).toEqual([[], []]);
    expect(await put(blobs, account, source, 'whole')).toMatchObject({ bytes: 5 });
  });

  test('one writes at a time; who is silent for too long loses the file, and removes his own', async () => {
    const { blobs, names, account, pass } = await startStore();
    const source = sourceOf(name, made, 'lease');
    const [slow, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = blobs.write({ source, account }, async (file) => {
      await file.write(Buffer.from('slow'));
      begun.resolve();
      await slow.promise;
      return { type: 'text/plain', notes: '{}' };
    });
    await begun.promise;
    expect(await put(blobs, account, source, 'early')).toBeNull();
    pass(LEASE_MS + 1);
    const second = await put(blobs, account, source, 'quick');
    slow.resolve();
    await expect(first).rejects.toThrow('another process now writes the file');
    expect(names()).toEqual([second!.id]);
    expect(await textOf(blobs, source, 0, 4)).toBe('quick');
  });

  test('room is checked for an account and for all', async () => {
    const { blobs, account } = await startStore();
    await blobs.admit(account, 4);
    await expect(blobs.admit(account, 6)).rejects.toMatchObject({ code: 'rate_limit_exceeded', retryAfterS: 60 });
    await put(blobs, account, sourceOf(name, made, 'room'), 'x'.repeat(900));
    await blobs.admit(account, 4);
    await put(blobs, account, sourceOf(name, made, 'more room'), 'x'.repeat(900));
    await expect(blobs.admit(account, 4)).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    const room = { id: `${account} room`, account: `${account} b`, files: 4, expiresAt: Number.MAX_SAFE_INTEGER };
    await blobs.takeRoom(room);
    await expect(blobs.admit(`${account} c`, 5)).rejects.toMatchObject({ code: 'service_unavailable' });
    await blobs.giveRoomBack(room.id);
  });

  test('a file that expires is not found any more, and is swept', async () => {
    const { blobs, names, account, pass } = await startStore();
    const source = sourceOf(name, made, 'expires');
    await put(blobs, account, source, 'for a day');
    pass(LIMITS.keepMs - 1);
    expect(await blobs.find([source])).toHaveLength(1);
    pass(2);
    expect(await blobs.find([source])).toEqual([]);
    while ((await blobs.sweep(10)) > 0);
    expect(names()).toEqual([]);
  });

  test('a store that fails stops no other, and its rows stay until its files are gone', async () => {
    const [own, old] = [await startStore(), await startStore()];
    const [kept, gone] = [sourceOf(name, made, 'of the old'), sourceOf(name, made, 'of the new')];
    await put(old.blobs, old.account, kept, 'old');
    await put(own.blobs, own.account, gone, 'new');
    let isAway = true;
    const former = {
      ...old.options.files,
      remove: (id: string) => (isAway ? Promise.reject(new Error('away')) : old.options.files.remove(id)),
    };
    const errors: unknown[] = [];
    for (const [files, ...rest] of [
      [former, own.options.files],
      [own.options.files, former],
    ] as const) {
      const onUnremoved = (error: unknown) => errors.push(error);
      const blobs = createBlobs({ ...own.options, files, former: rest, onUnremoved });
      own.pass(LIMITS.keepMs + 2 * HOUR_MS);
      await blobs.sweep(10);
      expect([own.names(), old.names().length]).toEqual([[], 1]);
    }
    expect(errors).toHaveLength(2);
    isAway = false;
    const blobs = createBlobs({ ...own.options, former: [former] });
    expect(await blobs.sweep(10)).toBe(1);
    expect(old.names()).toEqual([]);
    expect(await blobs.sweep(10)).toBe(0);
  });

  test('files that never go keep no other file', async () => {
    const { blobs, options, names, account, pass } = await startStore();
    const stuck = new Set<string>();
    for (const index of [0, 1, 2, 3]) {
      const blob = await put(blobs, account, sourceOf(name, made, index), 'text');
      if (index < 3) stuck.add(blob!.id);
      pass(1);
    }
    const remove = (id: string) => (stuck.has(id) ? Promise.reject(new Error('busy')) : options.files.remove(id));
    const hindered = createBlobs({ ...options, files: { ...options.files, remove } });
    pass(LIMITS.keepMs + HOUR_MS);
    await hindered.sweep(10);
    await hindered.sweep(10);
    expect(names().toSorted()).toEqual([...stuck].toSorted());
    pass(1);
    await blobs.sweep(10);
    expect(names()).toEqual([]);
  });

  test('files without a row are removed after an hour, and no others', async () => {
    const { blobs, folder, options, names, account } = await startStore();
    const stored = await put(blobs, account, sourceOf(name, made, 'orphans'), 'kept');
    mkdirSync(join(folder, 'aa'), { recursive: true });
    const [old, young, part] = ['a'.repeat(32), `${'a'.repeat(31)}b`, `${'a'.repeat(31)}c.part`] as const;
    for (const file of [old, young, part]) writeFileSync(join(folder, 'aa', file), 'x');
    const long = new Date(Date.now() - 2 * HOUR_MS);
    for (const file of [join('aa', old), join('aa', part), join(stored!.id.slice(0, 2), stored!.id)])
      utimesSync(join(folder, file), long, long);
    expect(await removeOrphans(options)).toBe(2);
    expect(names().sort()).toEqual([young, stored!.id].sort());
  });
});

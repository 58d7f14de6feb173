import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Blobs, createBlobs, openBlobFiles, removeOrphans, sourceOf } from '#files';
import { ENGINES, type OpenedEngine, openEngine } from '../../support/engines.ts';

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
    await blobs.admit(account, { files: 2 });
    await expect(blobs.admit(account, { files: 3 })).rejects.toThrow('use all of its space');
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
    await blobs.admit(account, { files: 2 });
    await expect(blobs.admit(account, { files: 3 })).rejects.toThrow('use all of its space');
    pass(HOUR_MS);
    await blobs.admit(account, { files: 4 });
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
    await blobs.admit(account, { files: 4 });
    await expect(blobs.admit(account, { files: 6 })).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      retryAfterS: 60,
    });
    await put(blobs, account, sourceOf(name, made, 'room'), 'x'.repeat(900));
    await blobs.admit(account, { files: 4 });
    await put(blobs, account, sourceOf(name, made, 'more room'), 'x'.repeat(900));
    await expect(blobs.admit(account, { files: 4 })).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
    const room = { id: `${account} room`, account: `${account} b`, files: 4, expiresAt: Number.MAX_SAFE_INTEGER };
    await blobs.takeRoom(room);
    await expect(blobs.admit(`${account} c`, { files: 5 })).rejects.toMatchObject({ code: 'service_unavailable' });
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

  test('a file takes what is reserved for it, and more if it is larger and there is room', async () => {
    const { account, options } = await startStore();
    const blobs = createBlobs({ ...options, limits: { ...LIMITS, bytesMax: 20_000 } });
    const room = { id: `${account} small`, account, files: 2, fileBytes: 100, expiresAt: options.now() + HOUR_MS };
    await blobs.takeRoom(room);
    // 200 of 5,000 bytes are reserved, and not twice the largest file.
    await blobs.admit(account, { files: 4 });
    const fill = (source: string, bytes: number, then?: () => Promise<void>) =>
      blobs.write({ source, account, room: room.id }, async (file) => {
        for (let at = 0; at < bytes; at += 50) await file.write(Buffer.alloc(50));
        await then?.();
        return { type: 'video/mp4', notes: '{}' };
      });
    const checked = await fill(sourceOf(name, made, 'larger'), 900, async () => {
      // It has doubled its room four times, up to the largest that a file may have.
      await blobs.admit(account, { files: 39, fileBytes: 100 });
      await expect(blobs.admit(account, { files: 40, fileBytes: 100 })).rejects.toThrow('use all of its space');
    });
    expect(checked).toMatchObject({ state: 'stored', bytes: 900 });
    const other = { ...room, id: `${account} other`, files: 1, fileBytes: 1_000 };
    for (const index of [1, 2, 3]) await blobs.takeRoom({ ...other, id: `${other.id} ${index}` });
    await blobs.takeRoom({ ...other, fileBytes: 900 });
    // 4,900 bytes are taken, with 100 for this file. It would take 400 for its 250 bytes.
    await expect(fill(sourceOf(name, made, 'too large for now'), 250)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
    });
    await blobs.giveRoomBack(other.id);
    expect(await fill(sourceOf(name, made, 'too large for now'), 250)).toMatchObject({ bytes: 250 });
    for (const id of [room.id, ...[1, 2, 3].map((index) => `${other.id} ${index}`)]) await blobs.giveRoomBack(id);
  });

  test('an account takes at most as much as it leaves to others, and free services share a small part', async () => {
    const { options, account } = await startStore();
    // Rows of other cases are in the same database, so the store is much larger than all of them.
    const limits = { ...LIMITS, bytesMax: 80_000, accountBytesMax: 80_000 };
    const blobs = createBlobs({ ...options, limits });
    const expiresAt = options.now() + HOUR_MS;
    const taken: string[] = [];
    const take = async (of: string, files: number, isFree = false) => {
      const id = `${of} ${taken.length}`;
      await blobs.takeRoom({ id, account: of, files, isFree, expiresAt });
      taken.push(id);
    };
    // Twenty accounts take what they can, and there is room for one more.
    const refusals: unknown[] = [];
    for (let index = 0; index < 20; index += 1)
      for (const files of [40, 20, 10, 5, 2])
        await take(`${account} ${index}`, files).catch((error: unknown) => refusals.push(error));
    expect(refusals.length).toBeGreaterThan(20);
    expect(refusals).toContainEqual(
      expect.objectContaining({
        code: 'rate_limit_exceeded',
        message: expect.stringContaining('its share') as string,
      }),
    );
    await blobs.admit(`${account} last`, { files: 1 });
    for (const id of taken.splice(0)) await blobs.giveRoomBack(id);

    // An eighth of all for free services: 10 files, and what is left of them is shared out, too.
    for (let index = 0; index < 5; index += 1)
      for (let files = 0; files < 10; files += 1) await take(`${account} f${index}`, 1, true).catch(() => {});
    expect(taken.length).toBeLessThanOrEqual(10);
    await expect(blobs.admit(`${account} f0`, { files: 2, isFree: true })).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      message: expect.stringContaining('free services') as string,
    });
    await expect(blobs.admit(`${account} f9`, { files: 10, isFree: true })).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('free service') as string,
    });
    await blobs.admit(`${account} paying`, { files: 30 });
    for (const id of taken) await blobs.giveRoomBack(id);
    await createBlobs({ ...options, limits: { ...limits, freeServicesBytesMax: 40_000 } }).admit(account, {
      files: 30,
      isFree: true,
    });
  });
});

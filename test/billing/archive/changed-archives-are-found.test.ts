import { generateKeyPairSync, hash } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findInArchive, verifyArchive } from '#billing/archive';
import { audit, createReceiptSigner } from '#billing/compose';
import { type Ledger, registeredArchives } from '#billing';
import { adHoc } from '../../support/ad-hoc.ts';
import {
  aDay,
  archiveBefore,
  archiveFolder,
  createClock,
  dayAt,
  faults,
  KEY,
  openBooks,
  type Clock,
} from '../../support/archived-books.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

type Line = readonly [string, ...unknown[]];

describe.each(ENGINES)('an archive of %s', (name) => {
  let engine: OpenedEngine;
  let place: ReturnType<typeof archiveFolder>;
  let clock: Clock;
  let ledger: Ledger;
  let paths: readonly string[];
  let ids: readonly string[];

  beforeEach(async () => {
    engine = await openEngine(name);
    place = archiveFolder();
    clock = createClock();
    ledger = await openBooks(engine.database, clock);
    ids = await aDay(ledger, clock, 0);
    await aDay(ledger, clock, 20);
    clock.at = dayAt(90);
    const first = await archiveBefore(engine.database, place.folder, clock, 10);
    const second = await archiveBefore(engine.database, place.folder, clock, 30);
    paths = [first.path, second.path];
    expect(await faults(engine.database)).toEqual([]);
  });
  afterEach(async () => {
    await ledger.close();
    await engine.dispose();
    place.remove();
  });

  const sql = (text: string) => engine.database.query(adHoc(text));
  const archives = async () => (await faults(engine.database)).filter((fault) => fault.startsWith('archives'));

  test('whose file is changed by one byte is found by the audit and by its proof', async () => {
    const bytes = readFileSync(paths[0]!);
    const { byteLength } = bytes;
    // An empty frame of zstd at the end would have 13 bytes.
    for (const at of [0, 10, byteLength >> 1, byteLength - 13, byteLength - 1]) {
      const changed = Buffer.from(bytes);
      changed[at] = changed[at]! ^ 1;
      writeFileSync(paths[0]!, changed);
      expect(await archives()).toEqual([expect.stringContaining('is not the file that was archived')]);
      await expect(verifyArchive(paths[0]!)).rejects.toThrow();
    }
    writeFileSync(paths[0]!, bytes);
    expect(await archives()).toEqual([]);
  });

  test('with bytes behind its end is refused by its proof, also if they decompress to nothing', async () => {
    const bytes = readFileSync(paths[0]!);
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 0x68, 0x69]);
    const behind = [Buffer.alloc(1), Buffer.alloc(100_000), Buffer.from('x'), skippable, zstdCompressSync('')];
    for (const more of behind) {
      writeFileSync(paths[0]!, Buffer.concat([bytes, more]));
      await expect(verifyArchive(paths[0]!)).rejects.toThrow('bytes follow its end');
      expect(await archives()).toEqual([expect.stringContaining('is not the file that was archived')]);
    }
    writeFileSync(paths[0]!, bytes);
    await verifyArchive(paths[0]!);
  });

  test('that takes the place of another is found', async () => {
    copyFileSync(paths[0]!, join(place.folder, 'first'));
    renameSync(paths[1]!, paths[0]!);
    renameSync(join(place.folder, 'first'), paths[1]!);
    const [found] = await archives();
    for (const path of paths) expect(found).toContain(`${path} is not the file`);
  });

  test('that is not at hand is named, and is no fault', async () => {
    rmSync(paths[0]!);
    const { ok, checks } = await audit(engine.database, { overdueMs: null });
    expect(ok).toBe(true);
    expect(checks.find((check) => check.name === 'archives')!.detail).toMatch(
      /2 archives have all before 2026-01-31.*not at hand, and not looked at: tollgate-archive-0001-before-2026-01-11/,
    );
  });

  test.each([
    [
      'a balance at its end',
      "UPDATE archived_balances SET available = available + 1 WHERE account = 'escrow:ada'",
      'balances at the end',
    ],
    [
      'two balances at its end',
      "UPDATE archived_balances SET available = available + CASE account WHEN 'escrow:ada' THEN 1 ELSE -1 END WHERE account IN ('escrow:ada', 'escrow:bob')",
      'balances at the end',
    ],
    ['a chain at its end', "UPDATE archived_chains SET hash = 'x'", 'balances at the end'],
    [
      'a transfer of its time',
      "UPDATE transfers SET memo = 'another' WHERE id = 'credit:0'",
      'transfer of the time of archive 1',
    ],
    [
      'a removed transfer of its time',
      "DELETE FROM transfers WHERE id = 'credit:20'",
      'transfer of the time of archive 2',
    ],
    [
      'what a key spent in it',
      'UPDATE archived_spending SET charged = charged + 1 WHERE archive = 1',
      'spending of archive 1',
    ],
    ['the row of an archive', 'DELETE FROM archives WHERE number = 1', 'archive 2 does not follow archive 0'],
  ])('%s cannot be changed unnoticed', async (_what, statement, words) => {
    await sql(statement);
    expect((await archives()).join()).toContain(words);
  });

  test('the row of the newest cannot be removed unnoticed', async () => {
    await sql('DELETE FROM archives WHERE number = 2');
    expect(await faults(engine.database)).not.toEqual([]);
  });

  /** Writes an archive whose lines were changed by somebody with the key of the gateway, or with another one. */
  const forge = (change: (line: Line) => readonly Line[], signer = createReceiptSigner(KEY)): string => {
    const lines = zstdDecompressSync(readFileSync(paths[0]!)).toString().trimEnd().split('\n');
    const changed = lines.slice(0, -1).flatMap((line) => change(JSON.parse(line) as Line));
    const content = changed.map((line) => `${JSON.stringify(line)}\n`).join('');
    const [[, header]] = changed as unknown as [[string, Record<string, unknown>]];
    const seal = signer.signArchive({
      number: header['number'],
      begins_at: header['begins_at'],
      ends_at: header['ends_at'],
      previous: null,
      content: hash('sha256', content),
    });
    const path = join(place.folder, 'forged.jsonl.zst');
    writeFileSync(path, zstdCompressSync(`${content}${JSON.stringify(['seal', seal])}\n`));
    return path;
  };
  const changed = (kind: string, edit: (line: Line) => Line | null) => {
    let isDone = false;
    return (line: Line): readonly Line[] => {
      if (line[0] !== kind || isDone) return [line];
      const edited = edit(line);
      if (edited === line) return [line];
      isDone = true;
      return edited === null ? [] : [edited];
    };
  };
  const call = (edit: Record<string, unknown>) =>
    changed('call', (line) => {
      const found = line[1] as Record<string, unknown>;
      return found['state'] === 'settled' ? ['call', { ...found, ...edit }, line[2]] : line;
    });

  test('as it was is right if it is sealed again', async () => {
    await expect(verifyArchive(forge((line) => [line]))).resolves.toMatchObject({ header: { number: 1 } });
  });

  test.each([
    ['a charge', call({ charged: '4' }), 'was charged 4 for usage that costs 3'],
    ['a usage', call({ usage: '{"completion":40}' }), 'receipt was not signed'],
    ['an account', call({ account: 'bob' }), /differ/],
    // Its own fee is rounded up or down by its id.
    ['a fee', call({ fee: '99' }), 'its fee is 99'],
    ['a missing call', changed('call', () => null), 'neither in the archive nor left'],
    ['a missing group', changed('group', () => null), /group 1 is missing|is not in the journal/],
    [
      'a changed group',
      changed(
        'group',
        (line) => [...line.slice(0, 7), String(line[7]).replace('1000000000', '1000000001')] as unknown as Line,
      ),
      'does not have its hash',
    ],
    [
      'a closing balance',
      changed('closing', (line) => ['closing', line[1], `${BigInt(line[2] as string) + 1n}`, line[3]]),
      'the archive says otherwise',
    ],
    ['a missing balance', changed('closing', () => null), 'does not name the balance'],
    [
      'an opening balance out of nothing',
      (line: Line) => (line[0] === 'archive' ? [line, ['opening', 'escrow:eve', '5', '0'] as Line] : [line]),
      'sum to 5',
    ],
    [
      'a price',
      changed('price', (line) => ['price', line[1], line[2], line[3], '{"completion":"1"}']),
      'does not match its id',
    ],
    [
      'a transfer',
      changed('transfer', (line) => ['transfer', line[1], line[2], line[3], '8', line[5], line[6]]),
      'differ',
    ],
    [
      'a receipt of another call',
      changed('call', (line) =>
        line[2] === null ? line : ['call', line[1], ['ada', 'tool', (line[2] as string[])[2]]],
      ),
      'receipt was not signed',
    ],
    [
      'a line of another kind',
      (line: Line) => (line[0] === 'archive' ? [line, ['__proto__', 1] as Line] : [line]),
      'kind that this version does not know',
    ],
    [
      'a line without fields',
      (line: Line) => (line[0] === 'archive' ? [line, ['to', 'main'] as unknown as Line] : [line]),
      'does not have the fields',
    ],
  ] as const)('with %s is not right, even if it is sealed again', async (_what, change, words) => {
    await expect(verifyArchive(forge(change))).rejects.toThrow(words);
  });

  test('sealed by another key is of that key, and then its receipts are not', async () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const other = createReceiptSigner(privateKey);
    await expect(verifyArchive(forge((line) => [line], other))).rejects.toThrow('its seal was not made with its key');
    const withKey = forge(
      (line) => (line[0] === 'archive' ? [['archive', { ...(line[1] as object), key: other.jwks().keys[0] }]] : [line]),
      other,
    );
    await expect(verifyArchive(withKey)).rejects.toThrow('receipt was not signed with the key of the archive');
  });

  test('gives out one call with its receipt', async () => {
    const [settled] = ids;
    const found = await findInArchive(paths[0]!, settled!);
    expect(found).toMatchObject({ call: { id: settled, state: 'settled', charged: '3' } });
    expect(found!.receipt!.split('.')).toHaveLength(3);
    expect(await findInArchive(paths[0]!, 'gen-ABCDEFGHIJKLzzzzzz')).toBeNull();
    expect(await registeredArchives(engine.database.query)).toHaveLength(2);
  });
});

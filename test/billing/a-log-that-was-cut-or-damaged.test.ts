import { cpSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { DatabaseError, openDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { emptyDataDirectory, newDataDirectory } from '../support/data-directory.ts';
import { segmentOf } from '../support/edited-log.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const CREDITS = 4;

let home: string;
/** A data directory whose log has the credits of 1, 2, 4 and 8, one record each; its tables have none of them. */
let filled: string;
/** Bytes of the log after each record. */
const ends: number[] = [];
beforeAll(async () => {
  home = emptyDataDirectory();
  const dataDir = newDataDirectory();
  const database = await openDatabase({ dataDir });
  await createPriceBook(database).remember([CRASH_PRICE]);
  await database.close();
  filled = join(home, 'filled');
  cpSync(dataDir, filled, { recursive: true });
  const again = await openDatabase({ dataDir });
  const ledger = await createLedger({ database: again });
  for (let turn = 0; turn < CREDITS; turn += 1) {
    await credit(ledger, `${turn}`, 2n ** BigInt(turn));
    ends.push(again.engine === 'sqlite' ? again.log.head.position : 0);
  }
  await again.close();
  cpSync(join(dataDir, 'ledger'), join(filled, 'ledger'), { recursive: true });
  rmSync(dataDir, { recursive: true });
});
afterAll(() => rmSync(home, { recursive: true }));

const credit = (ledger: Ledger, id: string, amount: bigint) =>
  ledger.transfer({ id, from: 'treasury:test', to: 'escrow:a', amount, memo: '' });

/** What a start finds after `damage`: the balance, or the error. */
async function startAfter(damage: (segment: string) => void): Promise<bigint | DatabaseError> {
  const dataDir = mkdtempSync(join(home, 'copy-'));
  cpSync(filled, dataDir, { recursive: true });
  damage(segmentOf(dataDir));
  try {
    const database = await openDatabase({ dataDir });
    const ledger = await createLedger({ database });
    const found = (await ledger.balance('escrow:a'))?.available ?? 0n;
    // It goes on from there.
    expect(await credit(ledger, 'more', 100n)).toMatchObject({ ok: true });
    expect(await credit(ledger, '0', 1n)).toMatchObject(found > 0n ? { reason: 'duplicate' } : { ok: true });
    expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
    await ledger.close();
    await database.close();
    const restarted = await openDatabase({ dataDir });
    expect((await audit(restarted)).ok).toBe(true);
    await restarted.close();
    return found;
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

/** Offsets of the log: all of them, or some of each record with its borders. */
function offsets(): number[] {
  const all = Array.from({ length: ends.at(-1)! }, (_, offset) => offset);
  if (DEEP) return all;
  const borders = [0, ...ends].flatMap((end) => [end - 2, end - 1, end, end + 1, end + 170]);
  return [...new Set(borders)].filter((offset) => offset >= 0 && offset < all.length);
}

const wholeBefore = (offset: number) => ends.filter((end) => end <= offset).length;

/** A process that ended well leaves a log that ends with its last record. One that crashed leaves zeros behind it. */
const ENDS: readonly (readonly [end: string, zeros: number])[] = [
  ['its last record', 0],
  ['zeros, as a crash leaves it', 1024 * 1024],
];
const addZeros = (segment: string, zeros: number) => truncateSync(segment, statSync(segment).size + zeros);

test.each(ENDS)(
  'a log with %s that lacks the end of a record goes on before it',
  { timeout: 3_600_000 },
  async (_end, zeros) => {
    for (const offset of offsets()) {
      const found = await startAfter((segment) => {
        truncateSync(segment, offset);
        addZeros(segment, zeros);
      });
      expect({ offset, found }).toEqual({ offset, found: 2n ** BigInt(wholeBefore(offset)) - 1n });
    }
  },
);

test.each(ENDS)(
  'in a log with %s a damaged record is refused, unless it is the last',
  { timeout: 3_600_000 },
  async (_end, zeros) => {
    for (const offset of offsets()) {
      const found = await startAfter((segment) => {
        const bytes = readFileSync(segment);
        bytes[offset]! ^= 1;
        writeFileSync(segment, bytes);
        addZeros(segment, zeros);
      });
      const record = wholeBefore(offset);
      if (record === CREDITS - 1) expect({ offset, found }).toEqual({ offset, found: 2n ** BigInt(record) - 1n });
      else {
        expect.soft(found, `byte ${offset}`).toMatchObject({ code: 'unusable' });
        expect
          .soft((found as DatabaseError).message, `byte ${offset}`)
          .toMatch(/ledger\/0{16}\.log is corrupt at byte \d+, after record \d+: .* Restore the data directory/);
      }
    }
  },
);

test('a log that ends before what the tables have followed is refused', { timeout: 3_600_000 }, async () => {
  const dataDir = mkdtempSync(join(home, 'followed-'));
  cpSync(filled, dataDir, { recursive: true });
  await (await openDatabase({ dataDir })).close();
  const whole = readFileSync(segmentOf(dataDir));
  for (const offset of offsets()) {
    writeFileSync(segmentOf(dataDir), whole.subarray(0, offset));
    await expect(openDatabase({ dataDir }), `${offset} bytes`).rejects.toThrow(
      `has no bytes ${offset} to ${whole.byteLength}, which the database knows of`,
    );
    addZeros(segmentOf(dataDir), 1024 * 1024);
    await expect(openDatabase({ dataDir }), `${offset} bytes and zeros`).rejects.toThrow(
      `has no bytes ${whole.byteLength - 1} to ${whole.byteLength}, which the database knows of`,
    );
  }
});

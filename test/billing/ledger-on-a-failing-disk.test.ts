import fs from 'node:fs';
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import type { Ledger } from '#billing';
import { openDatabase } from '#store';
import { FLUSH_MODES, lateEnds } from '../support/flush-modes.ts';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { newDataDirectory } from '../support/data-directory.ts';

// Operations of many callers, in any order, while writes to the log fail in every way that a disk knows. An id is never
// used twice, no call ends twice, and an answer that was given holds after the next start.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 60 : 2;
const ROUND_MS = 1_500;
const CALLERS = 12;
const ACCOUNTS = ['a', 'b', 'c'];

let dataDir: string;
beforeEach(() => {
  dataDir = newDataDirectory();
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const below = (most: number) => Math.floor(Math.random() * most);
const oneOf = <T>(values: readonly T[]): T => values[below(values.length)]!;

type Done = (error: Error | null, written?: number) => void;
type Write = (file: number, bytes: Buffer, from: number, count: number, offset: number, done: Done) => void;

/** While `isFailing`, writes are late; some fail before or after they reached the disk, or write only a part. */
function breakDisk() {
  const disk = { isFailing: false, failures: 0 };
  const real = fs.write as unknown as Write;
  const failure = () => {
    disk.failures += 1;
    return Object.assign(new Error('injected'), { code: oneOf(['EIO', 'ENOSPC']) });
  };
  const write: Write = (file, bytes, from, count, offset, done) => {
    if (!disk.isFailing) return real(file, bytes, from, count, offset, done);
    const late: Done = (error, written) => void setTimeout(() => done(error, written), below(10));
    // The first one fails in any case.
    const fate = disk.failures === 0 ? 0 : Math.random();
    if (fate < 0.02) real(file, bytes, from, count, offset, () => late(failure()));
    else if (fate < 0.04) real(file, bytes, from, 1 + below(count), offset, () => late(failure()));
    else if (fate < 0.06) real(file, bytes, from, 1 + below(count), offset, late);
    else real(file, bytes, from, count, offset, late);
  };
  vi.spyOn(fs, 'write').mockImplementation(write as never);
  return disk;
}

/** Answers of all rounds. */
class Told {
  readonly locks = new Set<string>();
  /** The charge of each ended lock; null for a released one. */
  readonly ends = new Map<string, bigint | null>();
  readonly transfers = new Set<string>();
  readonly twice: string[] = [];

  once(what: Set<string>, id: string): void {
    if (what.has(id)) this.twice.push(id);
    what.add(id);
  }

  end(id: string, charged: bigint | null): void {
    if (this.ends.has(id)) this.twice.push(`end of ${id}`);
    this.ends.set(id, charged);
  }
}

async function call(ledger: Ledger, name: string, told: Told, held: string[]): Promise<void> {
  const kind = below(10);
  if (kind < 4) {
    const id = below(10) === 0 && told.locks.size > 0 ? oneOf([...told.locks].slice(-50)) : name;
    const request = {
      id,
      account: oneOf(ACCOUNTS),
      amount: BigInt(below(200)),
      prices: [CRASH_PRICE.id],
      expiresAt: Date.now() + 3_600_000,
      workDone: below(4) === 0,
      detail: '{}',
    };
    if (!(await ledger.lock(request)).ok) return;
    told.once(told.locks, id);
    held.push(id);
  } else if (kind < 7 && held.length > 0) {
    const id = oneOf(held);
    const charge = BigInt(below(20));
    const usage = `{"call":${charge}}`;
    const settlement = {
      id,
      price: CRASH_PRICE.id,
      provider: 'p',
      charge,
      draw: false,
      feeBps: 500,
      usage,
      detail: '{}',
    };
    if (below(3) > 0) {
      const result = await ledger.settle(settlement);
      if (!result.ok) return;
      told.end(id, result.charged);
    } else {
      if (!(await ledger.release({ id, detail: '{}' })).ok) return;
      told.end(id, null);
    }
    held.splice(held.indexOf(id), 1);
  } else if (kind === 7) {
    const id = `transfer-${below(400)}`;
    const from = oneOf(['treasury:test', 'escrow:a'] as const);
    const { ok } = await ledger.transfer({ id, from, to: 'escrow:b', amount: BigInt(1 + below(30)), memo: '' });
    if (ok) told.once(told.transfers, id);
  } else if (held.length > 0) {
    if (kind === 8) await ledger.keep(oneOf(held), Date.now() + 3_600_000);
    else await ledger.find(oneOf(held));
  }
}

// The ledger is closed at the end of each round, so late answers hold too.
test.each(FLUSH_MODES)(
  '%s: no id is used twice, and no answer is lost',
  { timeout: 3_600_000 },
  async (_mode, flushMs) => {
    const disk = breakDisk();
    const told = new Told();
    for (let round = 0; round < ROUNDS; round += 1) {
      disk.isFailing = false;
      const database = await openDatabase({ dataDir });
      const ledger = lateEnds(await createLedger({ database, flushMs }));
      if (round === 0) {
        await createPriceBook(database).remember([CRASH_PRICE]);
        for (const account of ACCOUNTS)
          await ledger.transfer({
            id: `fund-${account}`,
            from: 'treasury:test',
            to: `escrow:${account}`,
            amount: 100_000n,
            memo: '',
          });
      }
      const held: string[] = [];
      const end = Date.now() + ROUND_MS;
      disk.isFailing = true;
      await Promise.all(
        Array.from({ length: CALLERS }, async (_one, caller) => {
          for (let turn = 0; Date.now() < end; turn += 1)
            await call(ledger, `r${round}-${caller}-${String(turn).padStart(6, '0')}`, told, held).catch(() => {});
        }),
      );
      disk.isFailing = false;
      await ledger.close();
      await database.close();
    }
    vi.restoreAllMocks();
    const database = await openDatabase({ dataDir });
    const ledger = await createLedger({ database });
    const lost: string[] = [];
    for (const [id, charged] of told.ends) {
      const record = await ledger.find(id);
      const isSame =
        charged === null ? record?.state === 'released' : record?.state === 'settled' && record.charged === charged;
      if (!isSame) lost.push(id);
    }
    expect({ twice: told.twice, lost }).toEqual({ twice: [], lost: [] });
    expect((await audit(database)).checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(told.ends.size).toBeGreaterThan(10);
    expect(disk.failures).toBeGreaterThan(0);
    await ledger.close();
    await database.close();
  },
);

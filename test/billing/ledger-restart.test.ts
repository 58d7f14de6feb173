import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { LedgerUnavailable } from '#billing';
import { openDatabase, type OpenDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { contradictions, loadLedger } from '../support/ledger-load.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';
import { atThisLoad } from '../support/at-this-load.ts';

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const RESTARTS = DEEP ? 50 : 2;
/** Pairs of a lock and its end before a restart, and as many at once. */
const [PAIRS, WIDTH] = DEEP ? [500, 64] : [150, 32];
const BACK_MS_MAX = 5_000;

let postgres: Postgres;
let database: OpenDatabase;
beforeAll(async () => {
  postgres = await startPostgres();
  database = await openDatabase({ url: postgres.url, dataDir: '' });
  await createPriceBook(database).remember([CRASH_PRICE]);
});
afterAll(async () => {
  await database.close();
  await postgres.stop();
});

describe('a database that restarts under load', () => {
  test('loses no acknowledged operation, settles every lock, and is used again at once', async () => {
    const ledger = await createLedger({ database });
    let finished = false;
    let pairs = 0;
    let waiting: { pairs: number; resolve: () => void } | undefined;
    const pairsMore = (count: number) => new Promise<void>((resolve) => (waiting = { pairs: pairs + count, resolve }));
    const onPair = () => {
      pairs += 1;
      if (waiting && pairs >= waiting.pairs) waiting.resolve();
    };
    const load = loadLedger(ledger, { width: WIDTH, prefix: 'r', done: () => finished, onPair });
    const backMs: number[] = [];
    for (let round = 0; round < RESTARTS; round += 1) {
      await pairsMore(PAIRS);
      if (round % 2 === 0) await postgres.restart('immediate');
      else {
        await postgres.kill9();
        await postgres.restart();
      }
      const begun = performance.now();
      await pairsMore(100);
      backMs.push(performance.now() - begun);
    }
    finished = true;
    const { told, surprises } = await load;
    expect(surprises).toEqual([]);
    expect(await contradictions(ledger, told)).toEqual([]);
    const report = await audit(database);
    expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(Math.max(...backMs)).toBeLessThan(atThisLoad(BACK_MS_MAX));
    await ledger.close();
  });

  test('fails a lock after about five seconds of silence, while a settlement waits for the answer', async () => {
    const ledger = await createLedger({ database });
    await ledger.transfer({ id: 'fund', from: 'treasury:test', to: 'escrow:silent', amount: 1_000n, memo: '' });
    const lock = (id: string) =>
      ledger.lock({
        id,
        account: 'silent',
        amount: 10n,
        prices: [CRASH_PRICE.id],
        expiresAt: Date.now() + 600_000,
        detail: '{}',
      });
    expect(await lock('silent-1')).toMatchObject({ ok: true });
    postgres.freeze();
    const begun = performance.now();
    const settled = ledger.settle({
      id: 'silent-1',
      price: CRASH_PRICE.id,
      provider: 'p',
      charge: 7n,
      draw: false,
      feeBps: 0,
      usage: '{"call":7}',
      detail: '{}',
    });
    await delay(50);
    await expect(lock('silent-2')).rejects.toThrow(LedgerUnavailable);
    const failedMs = performance.now() - begun;
    postgres.thaw();
    expect(await settled).toMatchObject({ ok: true, charged: 7n });
    expect(await ledger.balance('escrow:silent')).toEqual({ available: 993n, locked: 0n });
    expect(failedMs).toBeGreaterThan(3_000);
    expect(failedMs).toBeLessThan(atThisLoad(12_000));
    await ledger.close();
  });
});

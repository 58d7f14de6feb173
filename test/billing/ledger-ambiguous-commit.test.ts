import { afterEach, expect, inject, test } from 'vitest';
import { audit, createLedger, createPriceBook } from '#billing/compose';
import { openDatabase } from '#store';
import { CRASH_PRICE } from '../support/crash-price.ts';
import { startCuttingProxy, type Cut } from '../support/cutting-proxy.ts';
import { FLUSH_MODES, lateEnds } from '../support/flush-modes.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { contradictions, loadLedger } from '../support/ledger-load.ts';

const PAIRS = process.env['TOLLGATE_DEEP'] === '1' ? 200_000 : 800;

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0).toReversed()) await dispose();
});

test.each(FLUSH_MODES)('%s: a COMMIT whose answer was lost is found out, never done twice', async (_mode, flushMs) => {
  const fresh = await freshDatabase(inject('postgresUrl'));
  disposals.push(fresh.drop);
  const direct = await openDatabase({ url: fresh.url, dataDir: '' });
  disposals.push(direct.close);
  await createPriceBook(direct).remember([CRASH_PRICE]);
  // Every tenth commit is cut: half of them happened without an answer, half never arrived.
  let commits = 0;
  const cutEveryTenth = (): Cut | null => (++commits % 10 > 0 ? null : commits % 20 > 0 ? 'before' : 'after');
  const proxy = await startCuttingProxy(fresh.url, 'pgCommitTransaction', cutEveryTenth);
  disposals.push(proxy.close);
  const database = await openDatabase({ url: proxy.url, dataDir: '' });
  disposals.push(database.close);
  const ledger = lateEnds(await createLedger({ database, flushMs }));
  disposals.push(ledger.close);

  let pairs = 0;
  const unavailable: unknown[] = [];
  const { told, surprises } = await loadLedger(ledger, {
    width: 16,
    prefix: 'a',
    done: () => pairs >= PAIRS || unavailable.length > 0,
    onPair: () => (pairs += 1),
    onUnavailable: (error) => unavailable.push(error),
  });
  // At least one of either kind, however few commits the pairs share.
  expect(proxy.cuts).toBeGreaterThan(3);
  expect(surprises).toEqual([]);
  expect(unavailable).toEqual([]);
  expect(await contradictions(await createLedger({ database: direct }), told)).toEqual([]);
  const report = await audit(direct);
  expect(report.checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(report.totals.locksHeld).toBe(0);
});

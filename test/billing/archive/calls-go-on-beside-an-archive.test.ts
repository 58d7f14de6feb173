import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Ledger } from '#billing';
import { createRollUp, COMPARE_TEMPORARY, compareSums, findCursors } from '#analytics';
import { audit } from '#billing/compose';
import { readCarriedSum } from '#billing';
import { createEarnings } from '../../../src/console/pages/market/earnings.ts';
import { adHoc } from '../../support/ad-hoc.ts';
import {
  aDay,
  archiveBefore,
  archiveFolder,
  createClock,
  DAY_MS,
  dayAt,
  faults,
  lock,
  openBooks,
  settlementOf,
  type Clock,
} from '../../support/archived-books.ts';
import { ENGINES, openEngine, type OpenedEngine } from '../../support/engines.ts';

describe.each(ENGINES)('while old calls are archived on %s', (name) => {
  let engine: OpenedEngine;
  let place: ReturnType<typeof archiveFolder>;
  let clock: Clock;
  let ledger: Ledger;

  beforeEach(async () => {
    engine = await openEngine(name);
    place = archiveFolder();
    clock = createClock();
    ledger = await openBooks(engine.database, clock);
  });
  afterEach(async () => {
    expect(await faults(engine.database, [place.folder])).toEqual([]);
    await ledger.close();
    await engine.dispose();
    place.remove();
  });

  test('calls are locked and settled, and every audit is clean', async () => {
    for (let day = 0; day < 3; day += 1) await aDay(ledger, clock, day, 60);
    clock.at = dayAt(90);
    const state = { isDone: false };
    const archived = archiveBefore(engine.database, place.folder, clock, 30, { restTimes: 1 }).finally(
      () => (state.isDone = true),
    );
    const call = async () => {
      let calls = 0;
      while (!state.isDone) {
        const id = await lock(ledger, clock);
        expect(await ledger.settle(settlementOf(id))).toMatchObject({ ok: true, charged: 3n });
        calls += 1;
      }
      return calls;
    };
    const check = async () => {
      let audits = 0;
      while (!state.isDone) {
        expect(await faults(engine.database, [place.folder])).toEqual([]);
        audits += 1;
      }
      return audits;
    };
    const [calls, , audits] = await Promise.all([call(), call(), check(), archived]);
    expect(calls).toBeGreaterThan(0);
    expect(audits).toBeGreaterThan(0);
    const { archive } = await archived;
    expect(archive!.sums.calls).toBe(3 * 63);
  });

  test('two runs do not get in the way of one another', async () => {
    await aDay(ledger, clock, 0);
    clock.at = dayAt(90);
    const runs = await Promise.allSettled([
      archiveBefore(engine.database, place.folder, clock, 30),
      archiveBefore(engine.database, place.folder, clock, 30),
    ]);
    expect(runs.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(runs.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { message: 'an archive is being made already' },
    });
  });

  test('the figures have them before, and stay as they are when they are made anew', async () => {
    await aDay(ledger, clock, 0);
    await aDay(ledger, clock, 60);
    clock.at = dayAt(90);
    const { database } = engine;
    const isCounted = async (query: typeof database.query, ends: readonly { chain: string; n: number }[]) => {
      const cursors = await findCursors(query);
      return ends.every(({ chain, n }) => (cursors.get(chain)?.n ?? 0) >= n);
    };
    await expect(archiveBefore(database, place.folder, clock, 30, { isCounted })).rejects.toThrow(
      'do not have all calls of this time yet',
    );
    const rollUp = createRollUp({
      database,
      now: clock.now,
      everyMs: null,
      onError: (error) => {
        throw error;
      },
    });
    await rollUp.run();
    const textOf = (row: object) =>
      JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
    const figures = () =>
      Promise.all(
        ['usage_days', 'service_days', 'public_days', 'user_days', 'user_counts', 'known_counts'].map(async (table) =>
          (await database.query(adHoc(`SELECT * FROM ${table}`))).map(textOf).sort(),
        ),
      );
    const earnings = createEarnings(database);
    const range = { first: dayAt(0) / DAY_MS, last: dayAt(89) / DAY_MS };
    const byDay = async () => {
      const { entries, ...rest } = await earnings('p', range);
      return { ...rest, entries: [...entries].sort((a, b) => a.day - b.day) };
    };
    const [before, earned] = [await figures(), await byDay()];
    expect(before[0]!.length).toBeGreaterThan(0);
    expect(earned.entries.map(({ flags }) => flags)).toEqual([{ usage_missing: 5 }, { usage_missing: 5 }]);
    await archiveBefore(database, place.folder, clock, 30, { isCounted });
    expect(await figures()).toEqual(before);
    expect(await byDay()).toEqual(earned);
    await rollUp.rebuild();
    await rollUp.run();
    expect(await figures()).toEqual(before);
    const also = { temporary: COMPARE_TEMPORARY, check: compareSums };
    const { checks } = await audit(database, { overdueMs: null, also });
    expect(checks.find((check) => check.name === 'analytics')).toMatchObject({ ok: true });
    expect(checks.find((check) => check.name === 'analytics')!.detail).toContain('equal');
    await rollUp.close();
  });

  test('a limit without an end counts what archived calls have cost', async () => {
    const key = 'a'.repeat(64);
    await engine.database.query(
      adHoc(
        `INSERT INTO api_keys (hash, account, label, development, disabled, created_at, member) VALUES ('${key}', 'ada', '', 0, 0, 0, 'mia')`,
      ),
    );
    clock.at = dayAt(0);
    const budgets = [{ id: `${key}:all`, limit: 10n ** 12n }];
    for (let index = 0; index < 3; index += 1)
      await ledger.settle(settlementOf(await lock(ledger, clock, 'ada', { budgets })));
    const budget = { id: 'mia:all', account: 'ada', scope: 'member', name: 'mia', member: 'mia', start: null } as const;
    const old = await readCarriedSum(engine.database, budget, null, dayAt(0) + 1);
    clock.at = dayAt(50);
    await ledger.settle(settlementOf(await lock(ledger, clock, 'ada', { budgets })));
    clock.at = dayAt(90);
    const before = await readCarriedSum(engine.database, budget, old, clock.at);
    expect(before.spent).toBe(12n);
    await archiveBefore(engine.database, place.folder, clock, 55);
    for (const known of [null, old, before])
      expect((await readCarriedSum(engine.database, budget, known, clock.at)).spent).toBe(12n);
  });
});

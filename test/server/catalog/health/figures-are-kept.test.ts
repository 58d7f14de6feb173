import { describe, expect, onTestFinished, test } from 'vitest';
import { DatabaseError, type Database } from '#store';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { openKeptFigures, type KeptFiguresOptions } from '../../../../src/server/catalog/health/kept-figures.ts';
import { adHoc } from '../../../support/ad-hoc.ts';
import { BOTH_ENGINES, openEngine } from '../../../support/engines.ts';
import { until } from '../../../gateway/network/registry/registry-world.ts';
import { clock, offer } from '../../../gateway/call/routing/offers.ts';

const MINUTE = 60_000;
const a = offer({ provider: 'A' });
const sample = { firstByteMs: 5, durationMs: 10, completionTokens: 1 };
/** Longer than any test: what is written is written by `close`. */
const NEVER = 3_600_000;

/** A gateway's memory of offers on a database, with its own clock that only goes on. */
async function start(database: Database, now: () => number, more: Partial<KeptFiguresOptions> = {}) {
  const health = createHealth({ now: () => now() - 1_234_567.5, epochOffsetMs: 1_234_567.5, cooldownMs: 1_000 });
  const errors: Error[] = [];
  const kept = await openKeptFigures({
    database,
    figures: health,
    now,
    saveMs: NEVER,
    onError: (error) => errors.push(error),
    ...more,
  });
  onTestFinished(() => kept.close());
  return { health, kept, errors };
}

describe.each(BOTH_ENGINES)('on %s', (engine) => {
  const open = async () => {
    const opened = await openEngine(engine);
    onTestFinished(() => opened.dispose());
    return opened;
  };

  test('what is known of an offer survives a restart, each minute in its place', async () => {
    const { database } = await open();
    const now = clock();
    const first = await start(database, now);
    for (let call = 0; call < 3; call++) first.health.succeeded(a, sample);
    first.health.flagged(a, 'usage_missing');
    first.health.flagged(a, 'over_cap');
    now.advance(30 * MINUTE);
    first.health.blamed(a, 'account', now(), false);
    first.health.flagged(a, 'usage_missing');
    const before = first.health.stats(a);
    const compliance = first.health.compliance(a);
    await first.kept.close();

    const second = await start(database, now);
    expect(second.health.stats(a)).toEqual({ ...before, latencyMs: null, throughput: null });
    expect(second.health.stats(a)).toMatchObject({
      requests: 4,
      failures: 1,
      flags: { usage_missing: 2, over_cap: 1 },
      lastHour: { flags: 3 },
    });
    expect(second.health.compliance(a)).toBe(compliance);
    expect(second.health.available(a)).toBe(true);
    now.advance(31 * MINUTE);
    expect(second.health.stats(a)).toMatchObject({ requests: 4, lastHour: { requests: 1, failures: 1, flags: 1 } });
    await second.kept.close();
    now.advance(MINUTE);
    const third = await start(database, now);
    expect(third.health.stats(a)).toMatchObject({ requests: 4, lastHour: { requests: 1, failures: 1, flags: 1 } });
  });

  test('attempts are kept by day, also those of before midnight that are written after it', async () => {
    const { database } = await open();
    const now = clock();
    const DAY = 1_440 * MINUTE;
    now.advance(DAY - (now() % DAY) - MINUTE / 2);
    const first = Math.floor(now() / DAY);
    const gateways = [await start(database, now), await start(database, now)];
    for (const { health } of gateways) health.succeeded(a, sample);
    gateways[0]!.health.blamed(a, 'account', now(), false);
    now.advance(MINUTE);
    gateways[1]!.health.succeeded(a, sample);
    for (const { kept } of gateways) await kept.close();
    const days = adHoc('SELECT offer, day, successes, failures FROM offer_days ORDER BY day');
    expect(await database.query(days)).toEqual([
      { offer: a.id, day: BigInt(first), successes: 2n, failures: 1n },
      { offer: a.id, day: BigInt(first + 1), successes: 1n, failures: 0n },
    ]);
  });

  test('prompts are summed up for today and yesterday, over restarts', async () => {
    const { database } = await open();
    const now = clock();
    const DAY = 1_440 * MINUTE;
    now.advance(DAY - (now() % DAY) - MINUTE / 2);
    const first = await start(database, now);
    const prompts = { prompt: 1_000, cached: 600, charged: 0.25 };
    first.health.succeeded(a, { ...sample, prompts });
    first.health.succeeded(a, sample);
    await first.kept.close();
    const second = await start(database, now);
    // Amounts are rounded when they are written.
    expect(second.health.stats(a).prompts).toEqual({ prompt: 1_000, cached: 600, charged: 0 });
    now.advance(MINUTE);
    second.health.succeeded(a, { ...sample, prompts: { prompt: 3_000, cached: 0, charged: 900 } });
    const sum = { prompt: 4_000, cached: 600, charged: 900 };
    expect(second.health.stats(a).prompts).toEqual(sum);
    await second.kept.close();
    expect(second.health.stats(a).prompts).toEqual(sum);
    const third = await start(database, now);
    expect(third.health.stats(a).prompts).toEqual(sum);
    now.advance(DAY);
    expect(third.health.stats(a).prompts).toEqual({ prompt: 3_000, cached: 0, charged: 900 });
    now.advance(DAY);
    expect(third.health.stats(a).prompts).toBeNull();
    expect((await start(database, now)).health.stats(a).prompts).toBeNull();
  });

  test('a database that is away delays it, and nothing is counted twice', async () => {
    const { database } = await open();
    const now = clock();
    let away = false;
    const flaky: Database = {
      ...database,
      async batch(steps) {
        if (away) throw new DatabaseError('gone', { code: 'gone', unavailable: true });
        return database.batch(steps);
      },
    };
    const { health, kept, errors } = await start(flaky, now, { saveMs: 5 });
    health.succeeded(a, sample);
    away = true;
    health.flagged(a, 'over_cap');
    await until(() => errors.length > 0);
    for (let minute = 0; minute < 3; minute++) {
      now.advance(MINUTE);
      health.succeeded(a, sample);
    }
    expect(health.stats(a)).toMatchObject({ requests: 4, flags: { over_cap: 1 } });
    away = false;
    await kept.close();
    expect(errors).toHaveLength(1);
    const { health: after } = await start(database, now);
    for (const one of [health, after])
      expect(one.stats(a)).toMatchObject({
        requests: 4,
        flags: { over_cap: 1 },
        lastHour: { requests: 4, failures: 0, flags: 1 },
      });
  });

  test('minutes that are past the hour are removed, and what was counted ever is not', async () => {
    const { database } = await open();
    const now = clock();
    const { health, kept } = await start(database, now);
    for (let minute = 0; minute < 5; minute++) {
      health.succeeded(a, sample);
      now.advance(MINUTE);
    }
    await kept.close();
    expect(await kept.sweep(100)).toBe(0);
    now.advance(60 * MINUTE);
    expect(await kept.sweep(2)).toBe(2);
    expect(await kept.sweep(100)).toBe(2);
    expect(await kept.sweep(100)).toBe(0);
    const { health: after } = await start(database, now);
    expect(after.stats(a)).toMatchObject({ requests: 5, lastHour: { requests: 0 } });
  });
});

test('gateways of one database add to the same figures, and see what the others counted', async () => {
  const opened = await openEngine('postgres');
  onTestFinished(() => opened.dispose());
  const now = clock();
  const one = await start(opened.database, now, { saveMs: 5, lookMs: 0 });
  const other = await start(await opened.again(), now, { saveMs: 5, lookMs: 0 });
  const b = offer({ provider: 'B' });
  for (let call = 0; call < 50; call++) {
    one.health.succeeded(a, { ...sample, prompts: { prompt: 10, cached: 5, charged: 2 } });
    other.health.blamed(a, 'account', now(), false);
    other.health.flagged(b, 'usage_missing');
    // Both write in between.
    if (call % 10 === 0)
      await until(() => one.health.unsaved.figures().length + other.health.unsaved.figures().length === 0);
  }
  for (const { health } of [one, other]) {
    await until(() => {
      const { requests, prompts } = health.stats(a);
      return requests === 100 && prompts?.prompt === 500 && health.stats(b).flags['usage_missing'] === 50;
    });
    expect(health.stats(a)).toMatchObject({
      requests: 100,
      failures: 50,
      lastHour: { requests: 100, failures: 50 },
      prompts: { prompt: 500, cached: 250, charged: 100 },
    });
    expect(health.compliance(b)).toBeCloseTo(1 - 50 / 55);
  }
  expect([...one.errors, ...other.errors]).toEqual([]);
});

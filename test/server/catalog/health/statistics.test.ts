import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../src/server/catalog/health/health.ts';
import { createSamples, createSlidingCount } from '../../../../src/server/catalog/health/rolling-stats.ts';
import { clock, offer } from '../../../gateway/call/routing/offers.ts';

const MINUTE = 60_000;
const RUNS = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 200;

describe('what is known of an offer', () => {
  const a = offer({ provider: 'A' });
  const sample = (firstByteMs: number, durationMs = 1000, completionTokens = 10) => ({
    firstByteMs,
    durationMs,
    completionTokens,
  });

  test('is nothing before its first call', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1 });
    expect(health.stats(a)).toEqual({
      requests: 0,
      failures: 0,
      flags: {},
      lastHour: { requests: 0, failures: 0, flags: 0 },
      uptime: null,
      latencyMs: null,
      prompts: null,
      throughput: null,
    });
    expect(health.available(a)).toBe(true);
  });

  test('is its uptime over the last hour, and its calls since the start', () => {
    const now = clock();
    const health = createHealth({ now, cooldownMs: 1 });
    for (let call = 0; call < 3; call++) health.succeeded(a, sample(5));
    health.unreachable(a);
    expect(health.stats(a)).toMatchObject({ requests: 4, failures: 1, uptime: 0.75 });
    now.advance(30 * MINUTE);
    health.unreachable(a);
    expect(health.stats(a).uptime).toBeCloseTo(3 / 5);
    now.advance(30 * MINUTE);
    expect(health.stats(a)).toMatchObject({
      requests: 5,
      failures: 2,
      uptime: 0,
      lastHour: { requests: 1, failures: 1 },
    });
    now.advance(31 * MINUTE);
    expect(health.stats(a)).toMatchObject({ requests: 5, uptime: null });
  });

  test('is the time to its first byte and its speed, of the newest calls', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1 });
    for (let ms = 1; ms <= 100; ms++) health.succeeded(a, sample(ms, 500, ms));
    expect(health.stats(a)).toMatchObject({ latencyMs: { p50: 50, p95: 95 }, throughput: { p50: 100 } });
    for (let call = 0; call < 128; call++) health.succeeded(a, sample(7));
    expect(health.stats(a)).toMatchObject({ latencyMs: { p50: 7, p95: 7 }, throughput: { p50: 10 } });
  });

  test('has no speed from a call without tokens or time', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1 });
    health.succeeded(a, sample(5, 0, 10));
    health.succeeded(a, sample(5, 10, 0));
    expect(health.stats(a).throughput).toBeNull();
  });

  test('is its flags, by name', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1 });
    for (const flag of ['usage_missing', 'over_cap', 'usage_missing', '__proto__']) health.flagged(a, flag);
    expect(Object.entries(health.stats(a).flags)).toEqual([
      ['usage_missing', 2],
      ['over_cap', 1],
      ['__proto__', 1],
    ]);
  });

  test('is forgotten when ten thousand others were heard of', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1000 });
    health.unreachable(a);
    for (let other = 0; other < 10_000; other++) health.unreachable(offer({ provider: `P${other}` }));
    expect(health.stats(a).requests).toBe(0);
  });

  test('stays while it is called, however many others are called once', () => {
    const health = createHealth({ now: clock(), cooldownMs: 1000 });
    for (let other = 0; other < 25_000; other++) {
      if (other % 100 === 0) health.succeeded(a, sample(5));
      health.succeeded(offer({ provider: `P${other}` }), sample(5));
    }
    expect(health.stats(a).requests).toBe(250);
  });
});

test('a sliding count equals a recount of what lies in its window', () => {
  const steps = fc.array(fc.tuple(fc.nat({ max: 25_000 }), fc.nat({ max: 1 })), { maxLength: 80 });
  fc.assert(
    fc.property(steps, (moves) => {
      const [slots, slotMs] = [10, 1_000];
      const count = createSlidingCount({ slots, slotMs, kinds: 2 });
      const events: { at: number; kind: number }[] = [];
      let at = 1_700_000_000_000;
      for (const [passed, kind] of moves) {
        at += passed;
        count.add(kind, at);
        events.push({ at, kind });
        for (const one of [0, 1]) {
          const wanted = events.filter(
            (event) => event.kind === one && Math.floor(event.at / slotMs) > Math.floor(at / slotMs) - slots,
          ).length;
          expect(count.total(one, at)).toBe(wanted);
        }
      }
    }),
    { numRuns: RUNS },
  );
});

test('a sliding count survives a clock that steps back', () => {
  const count = createSlidingCount({ slots: 10, slotMs: 1_000, kinds: 1 });
  count.add(0, 1_000_000);
  count.add(0, 900_000);
  expect(count.total(0, 900_000)).toBe(2);
  expect(count.total(0, 1_010_000)).toBe(0);
});

test('a percentile is the nearest rank of the newest samples', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat({ max: 1000 }), { minLength: 1, maxLength: 60 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, p) => {
        const samples = createSamples(16);
        for (const value of values) samples.add(value);
        const newest = values.slice(-16).sort((one, other) => one - other);
        expect(samples.percentile(p)).toBe(newest[Math.max(0, Math.ceil(p * newest.length) - 1)]);
      },
    ),
    { numRuns: RUNS },
  );
  expect(createSamples(4).percentile(0.5)).toBeNull();
});

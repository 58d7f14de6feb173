import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LIMIT_RESETS, budgetAt, periodAt } from '../../../src/server/accounts/budgets.ts';

const at = (text: string) => Date.parse(text);
const iso = ({ start, end }: { start: number; end: number }) => [
  new Date(start).toISOString(),
  new Date(end).toISOString(),
];

describe('spending periods', () => {
  it('begin at midnight UTC, on Mondays, on the first of the month', () => {
    expect(iso(periodAt('daily', at('2028-02-29T23:59:59.999Z')))).toEqual([
      '2028-02-29T00:00:00.000Z',
      '2028-03-01T00:00:00.000Z',
    ]);
    expect(iso(periodAt('weekly', at('2027-01-03T23:59:59.999Z')))).toEqual([
      '2026-12-28T00:00:00.000Z',
      '2027-01-04T00:00:00.000Z',
    ]);
    expect(iso(periodAt('weekly', at('2027-01-04T00:00:00Z')))).toEqual([
      '2027-01-04T00:00:00.000Z',
      '2027-01-11T00:00:00.000Z',
    ]);
    expect(iso(periodAt('monthly', at('2026-12-31T23:59:59Z')))).toEqual([
      '2026-12-01T00:00:00.000Z',
      '2027-01-01T00:00:00.000Z',
    ]);
  });

  it('hold every instant in exactly one period', () => {
    fc.assert(
      fc.property(fc.constantFrom(...LIMIT_RESETS), fc.integer({ min: 0, max: 4_102_444_800_000 }), (reset, now) => {
        const { start, end } = periodAt(reset, now);
        expect(start <= now && now < end).toBe(true);
        expect(periodAt(reset, end).start).toBe(end);
        expect(periodAt(reset, end - 1).start).toBe(start);
        if (reset === 'weekly') expect(new Date(start).getUTCDay()).toBe(1);
      }),
    );
  });

  it('give each period of each reset a budget of its own', () => {
    const now = at('2026-06-01T12:00:00Z');
    const key = { limit: 5n, limitSoft: false };
    const ids = LIMIT_RESETS.map((limitReset) => budgetAt('h', { ...key, limitReset }, now));
    expect(ids).toEqual([
      { id: 'h:daily-2026-06-01', limit: 5n, resetsAt: at('2026-06-02T00:00:00Z') },
      { id: 'h:weekly-2026-06-01', limit: 5n, resetsAt: at('2026-06-08T00:00:00Z') },
      { id: 'h:monthly-2026-06-01', limit: 5n, resetsAt: at('2026-07-01T00:00:00Z') },
    ]);
    expect(budgetAt('h', { ...key, limitReset: null }, now)).toEqual({ id: 'h:all', limit: 5n, resetsAt: null });
  });

  it('count what a key without a limit spends, and never refuse it', () => {
    const { id, limit } = budgetAt('h', { limit: null, limitReset: 'daily', limitSoft: false }, 0);
    expect(id).toBe('h:all');
    expect(limit).toBeGreaterThan(10n ** 18n);
  });

  it('count by the period what a soft limit is told of, and never refuse it', () => {
    const { id, limit } = budgetAt('h', { limit: 5n, limitReset: 'daily', limitSoft: true }, 0);
    expect(id).toBe('h:daily-1970-01-01');
    expect(limit).toBeGreaterThan(10n ** 18n);
  });
});

import { expect, test } from 'vitest';
import { createBudgetPolls } from '../../../src/gateway/webhooks/budget-polls.ts';

test('each look reads a few past days, and all of a month in their turn', async () => {
  let at = Date.parse('2026-03-31T12:00:00Z');
  const days: string[] = [];
  const poll = createBudgetPolls({
    database: {
      engine: 'sqlite',
      query: async ({ name }, params) => {
        if (name.includes('watchedLimits')) days.push(String(params![0]));
        return [];
      },
      snapshot: () => Promise.reject(new Error('nothing is read beside')),
    },
    now: () => at,
    onNotice: () => {},
  });
  await poll();
  const newest = ['daily-2026-03-30', 'daily-2026-03-29', 'daily-2026-03-28', 'daily-2026-03-31'];
  expect(days.splice(0)).toEqual(newest);
  for (let minute = 0; minute < 29; minute += 1) {
    at += 60_000;
    await poll();
  }
  expect(days).toHaveLength(29 * 4);
  // The day on which the longest task of today may have begun, and all after it.
  const all = Array.from({ length: 32 }, (_, day) => new Date(Date.UTC(2026, 1, 28 + day)).toISOString().slice(0, 10));
  expect([...new Set(days)].toSorted()).toEqual(all.map((day) => `daily-${day}`));
});

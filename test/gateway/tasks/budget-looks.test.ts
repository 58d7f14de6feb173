import { expect, test } from 'vitest';
import { createBudgetLooks } from '../../../src/tasks/notices/budget-looks.ts';

const DAY_MS = 86_400_000;

test('however long tasks may last, each look reads a few days, and all in their turn', async () => {
  let at = Date.parse('2026-03-30T12:00:00Z');
  const days: string[] = [];
  const look = createBudgetLooks({
    database: {
      query: async ({ name }, params) => {
        if (name.includes('watched-limits')) days.push(String(params![0]));
        return [];
      },
    },
    now: () => at,
    callMsMax: 20 * DAY_MS,
    onNotice: () => {},
  });
  await look();
  expect(days.splice(0).slice(-4)).toEqual([
    'daily-2026-03-29',
    'daily-2026-03-28',
    'daily-2026-03-27',
    'daily-2026-03-30',
  ]);
  for (let minute = 0; minute < 20; minute += 1) {
    at += 60_000;
    await look();
  }
  expect(days).toHaveLength(80);
  // The day on which the longest task of today may have begun, and all after it.
  expect([...new Set(days)].toSorted()).toEqual(Array.from({ length: 21 }, (_, day) => `daily-2026-03-${day + 10}`));
});

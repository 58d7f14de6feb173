import { utcDay } from '../../../api/own.ts';
import { monthName, months } from '../../../ui/months.ts';

/** UTC days in order, both ends included. */
export interface Period {
  readonly first: string;
  readonly last: string;
  readonly days: readonly string[];
}

const DAY_MS = 86_400_000;

function daysFrom(first: string, last: string): Period {
  const start = Date.parse(first);
  const count = Math.round((Date.parse(last) - start) / DAY_MS) + 1;
  const days = Array.from({ length: count }, (_, index) => new Date(start + index * DAY_MS).toISOString().slice(0, 10));
  return { first, last, days };
}

/** The last `days` days, today included. */
export const lastDays = (days: number): Period => daysFrom(utcDay(days - 1), utcDay(0));

/** The UTC day before today. */
export const yesterday = (): Period => daysFrom(utcDay(1), utcDay(1));

/** A month such as `2026-10`; the current one until today. */
export function monthPeriod(month: string): Period {
  const next = new Date(`${month}-01`);
  next.setUTCMonth(next.getUTCMonth() + 1, 0);
  const last = next.toISOString().slice(0, 10);
  return daysFrom(`${month}-01`, last < utcDay(0) ? last : utcDay(0));
}

/** The months to choose from, and first none. */
export const monthOptions = () => [
  { value: '', text: 'A month' },
  ...months().map((value) => ({ value, text: monthName(value) })),
];

/** Whether a month of the address can be chosen. */
export const isMonth = (month: string): boolean => months().includes(month);

import { expect, it } from 'vitest';
import { dateOf } from '#analytics';
import { type DayRangeQuery, parseDayRange } from '../../../../src/console/pages/day-range.ts';

const NOW = Date.parse('2026-03-10T23:59:59.999Z');
const days = (query: DayRangeQuery, period?: 'week' | 'month') => {
  const { first, last } = parseDayRange(query, NOW, { period });
  return [dateOf(first), dateOf(last)];
};

it.each([
  [{}, ['2026-03-03', '2026-03-10']],
  [{ start_date: '2026-03-10' }, ['2026-03-10', '2026-03-10']],
  [{ end_date: '2026-01-03' }, ['2025-12-27', '2026-01-03']],
  [{ start_date: '2024-02-29', end_date: '2024-03-01' }, ['2024-02-29', '2024-03-01']],
  [{ start_date: '2025-03-10', end_date: '2026-03-10' }, ['2025-03-10', '2026-03-10']],
  // A time is within its UTC day; one without a zone is UTC.
  [{ start_date: '2026-01-01T23:30:00-05:00', end_date: '2026-01-02T00:00:00.5Z' }, ['2026-01-02', '2026-01-02']],
  [{ start_date: '2026-01-01T23:59', end_date: '2026-01-01T00:00:00+00:00' }, ['2026-01-01', '2026-01-01']],
  [{ start_date: '2030-01-01', end_date: '2030-01-02' }, ['2030-01-01', '2030-01-02']],
  [{ start_date: '1969-12-31', end_date: '1970-01-01' }, ['1969-12-31', '1970-01-01']],
  // There is no year before 0000 in four digits.
  [{ end_date: '0000-01-03' }, ['0000-01-01', '0000-01-03']],
])('%j are the days %j', (query, expected) => {
  expect(days(query)).toEqual(expected);
});

it.each([
  // Ten days after the first, the month of a week before is whole too.
  [{}, 'month', ['2026-03-01', '2026-03-10']],
  [{ end_date: '2026-03-05' }, 'month', ['2026-02-01', '2026-03-05']],
  // The 2nd of March 2026 was a Monday.
  [{}, 'week', ['2026-03-02', '2026-03-10']],
  [{ start_date: '2026-03-04' }, 'month', ['2026-03-04', '2026-03-10']],
  [{ end_date: '0000-01-03' }, 'week', ['0000-01-01', '0000-01-03']],
] as const)('%j by %s are the days %j', (query, period, expected) => {
  expect(days(query, period)).toEqual(expected);
});

it('takes from and to for start_date and end_date, but not both names', () => {
  expect(days({ from: '2026-02-01', to: '2026-02-02' })).toEqual(['2026-02-01', '2026-02-02']);
  expect(() => days({ from: '2026-02-01', start_date: '2026-02-01' })).toThrow('from is another name of start_date');
  expect(() => days({ to: 'x' })).toThrow('to must be a date');
});

const NO_DATES = [
  '',
  'today',
  '2026-02-30',
  '2026-13-01',
  '2026-1-1',
  '20260101',
  '2026-01-01T',
  '2026-01-01T25:00',
  '2026-01-01 00:00',
];
const NOR_THESE = ['1e3', '0', 'NaN', '2026-01-01T00:00:00+99:99', '+002026-01-01'];

it.each<readonly [DayRangeQuery, string]>([
  [{ start_date: '2026-03-11' }, 'start_date is after end_date'],
  [{ start_date: '2026-03-09', end_date: '2026-03-08' }, 'start_date is after end_date'],
  [{ start_date: '2025-03-09', end_date: '2026-03-10' }, 'at most 366 days'],
  ...[...NO_DATES, ...NOR_THESE].map((text) => [{ start_date: text }, 'start_date must be a date'] as const),
  [{ end_date: '2026-02-29' }, 'end_date must be a date'],
])('%j are refused: %s', (query, message) => {
  expect(() => days(query)).toThrow(message);
});

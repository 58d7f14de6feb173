import { expect, test } from 'vitest';
import { dateOf, timeZoneOf } from '#analytics';

const DAY_MS = 86_400_000;
const dayOf = (date: string) => Date.parse(date) / DAY_MS;

test.each([
  ['Asia/Kathmandu', '2026-10-01', '2026-09-30T18:15:00Z'],
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00Z'],
  ['Europe/Berlin', '2026-03-30', '2026-03-29T22:00:00Z'],
  ['Europe/Berlin', '2026-10-26', '2026-10-25T23:00:00Z'],
  ['America/Los_Angeles', '2026-11-02', '2026-11-02T08:00:00Z'],
  ['Pacific/Kiritimati', '2026-01-01', '2025-12-31T10:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-05', '2026-04-04T13:00:00Z'],
  // Clocks are put forward at midnight.
  ['America/Havana', '2026-03-08', '2026-03-08T05:00:00Z'],
  ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00Z'],
  // They were put back at midnight.
  ['America/Sao_Paulo', '2019-02-17', '2019-02-17T03:00:00Z'],
  // There was no such day.
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00Z'],
  ['Pacific/Apia', '2011-12-31', '2011-12-30T10:00:00Z'],
])('in %s the day %s begins at %s', (name, date, start) => {
  const zone = timeZoneOf(name)!;
  const at = Date.parse(start);
  expect(new Date(zone.startOf(dayOf(date))).toISOString()).toBe(new Date(at).toISOString());
  expect(zone.dayAt(at)).toBe(dayOf(date === '2011-12-30' ? '2011-12-31' : date));
  expect(dateOf(zone.dayAt(at - 1)) < date).toBe(true);
});

test('instants in any order have their day', () => {
  const zone = timeZoneOf('Europe/Berlin')!;
  const days = ['2026-10-25T22:59:59Z', '2026-01-31T23:00:00Z', '2026-10-25T23:00:00Z', '2026-07-01T21:59:59Z'];
  expect(days.map((at) => dateOf(zone.dayAt(Date.parse(at))))).toEqual([
    '2026-10-25',
    '2026-02-01',
    '2026-10-26',
    '2026-07-01',
  ]);
});

test('a name has the letters of the IANA database, and no offset is a name', () => {
  expect(['europe/berlin', 'Asia/Kathmandu', 'UTC'].map((name) => timeZoneOf(name)?.name)).toEqual([
    'Europe/Berlin',
    'Asia/Kathmandu',
    'UTC',
  ]);
  expect(['Europe/Nowhere', '+05:45', '', 'Europe/Berlin '].map(timeZoneOf)).toEqual([null, null, null, null]);
});

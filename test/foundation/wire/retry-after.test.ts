import { expect, test } from 'vitest';
import { retryAfterOf } from '#wire';

test('Retry-After is whole seconds of a number or a date, an hour at most', () => {
  const inTwoMinutes = new Date(Date.now() + 120_000).toUTCString();
  const inADay = new Date(Date.now() + 86_400_000).toUTCString();
  expect(['0', '3', '0.2', '3600', '3601', '999999', '99999999999', inADay].map(retryAfterOf)).toEqual([
    0, 3, 1, 3_600, 3_600, 3_600, 3_600, 3_600,
  ]);
  expect(retryAfterOf(inTwoMinutes)).toBeGreaterThan(60);
  expect(retryAfterOf('Mon, 01 Jan 2001 00:00:00 GMT')).toBe(0);
  for (const odd of ['-1', '1e9', 'soon', '', ' ', 'Infinity', undefined, 7, ['3']])
    expect(retryAfterOf(odd)).toBeUndefined();
});

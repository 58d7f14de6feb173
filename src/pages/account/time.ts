const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/;

const DAY = /^\d{4}-\d\d-\d\d$/;

/**
 * Parses a date and time with time zone (RFC 3339, seconds optional) to epoch milliseconds. Returns NaN for any other
 * text, and for a day that does not exist.
 */
export const parseTime = (text: string): number =>
  RFC_3339.test(text) && !Number.isNaN(parseDay(text.slice(0, 10))) ? Date.parse(text) : NaN;

/** Parses a day such as `2026-01-31` to epoch milliseconds of its beginning in UTC. Returns NaN for any other text. */
export function parseDay(text: string): number {
  const time = DAY.test(text) ? Date.parse(text) : NaN;
  // Date.parse accepts February 30 as March 2.
  return Number.isNaN(time) || new Date(time).toISOString().startsWith(text) ? time : NaN;
}

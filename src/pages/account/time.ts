const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Parses a date and time with time zone (RFC 3339, seconds optional) to epoch milliseconds. Returns NaN for any other
 * text.
 */
export const parseTime = (text: string): number => (RFC_3339.test(text) ? Date.parse(text) : NaN);

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/;
const MINUTE_MS = 60_000;

/**
 * Epoch milliseconds of an RFC 3339 time such as `2026-03-04T05:06:07.089Z`. null for any other form, and for a date or
 * time that does not exist. `Date.parse` accepts many other forms, and reads some of them as local time.
 */
export function parseTime(text: string): number | null {
  const found = RFC_3339.exec(text);
  if (!found) return null;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHours, offsetMinutes] = found;
  const fields = [Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)] as const;
  const date = new Date(0);
  date.setUTCFullYear(fields[0], fields[1], fields[2]);
  date.setUTCHours(fields[3], fields[4], fields[5], Number(fraction.slice(0, 3).padEnd(3, '0')));
  // A field that is out of range has changed the other fields.
  if (date.getUTCMonth() !== fields[1] || date.getUTCDate() !== fields[2] || date.getUTCHours() !== fields[3])
    return null;
  if (date.getUTCMinutes() !== fields[4] || date.getUTCSeconds() !== fields[5]) return null;
  if (sign === undefined) return date.getTime();
  const offset = Number(offsetHours) * 60 + Number(offsetMinutes);
  if (Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return null;
  return date.getTime() - (sign === '-' ? -offset : offset) * MINUTE_MS;
}

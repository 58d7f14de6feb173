import { DAY_MS, dateOf } from './call-facts.ts';

/** The days of a time zone. Days are counted since 1970-01-01, as dates of the zone. */
export interface TimeZone {
  /** As in the IANA database, such as `Europe/Berlin`. */
  readonly name: string;
  /** The day at an instant in epoch milliseconds. */
  dayAt(at: number): number;
  /** Epoch milliseconds of the first instant of a day. */
  startOf(day: number): number;
}

export const UTC: TimeZone = {
  name: 'UTC',
  dayAt: (at) => Math.floor(at / DAY_MS),
  startOf: (day) => day * DAY_MS,
};

/** A time zone by its IANA name; null for another text, also for an offset such as `+05:45`, which has no rules. */
export function timeZoneOf(name: string): TimeZone | null {
  if (name === 'UTC') return UTC;
  if (!/^[A-Za-z][\w+-]*(?:\/[\w+-]+)*$/.test(name)) return null;
  try {
    return zoneOf(Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId);
  } catch {
    return null;
  }
}

/** A time in which the zone keeps its offset. All in milliseconds. */
interface Span {
  readonly from: number;
  /** Exclusive. */
  readonly until: number;
  readonly offset: number;
}

function zoneOf(name: string): TimeZone {
  // Calls are read in about the order of their times, so the last span is mostly the one that is needed.
  let span: Span = { from: 0, until: 0, offset: 0 };
  return {
    name,
    dayAt(at) {
      if (at < span.from || at >= span.until) span = spanAt(name, at);
      return Math.floor((at + span.offset) / DAY_MS);
    },
    // A day may begin at another time than 00:00, where clocks are put forward at midnight.
    startOf: (day) => Temporal.PlainDate.from(dateOf(day)).toZonedDateTime(name).epochMilliseconds,
  };
}

function spanAt(name: string, at: number): Span {
  const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(name);
  const next = local.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity;
  return { from: at, until: next, offset: local.offsetNanoseconds / 1e6 };
}

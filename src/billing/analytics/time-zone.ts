import { DAY_MS } from './call-facts.ts';

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
    return zoneOf(name);
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

/** The largest distance of a zone's clock from UTC. */
const OFFSET_MAX_MS = DAY_MS;

/** `Temporal` would do this, but Node 24 does not have it. Throws RangeError for an unknown name. */
function zoneOf(id: string): TimeZone {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: id,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const { timeZone } = format.resolvedOptions();
  // An older name of the same zone is no better.
  const name = timeZone.toLowerCase() === id.toLowerCase() ? timeZone : id;
  /** Of a whole second. */
  const offsetAt = (at: number): number => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
    const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
    return local - at;
  };
  // Calls are read in about the order of their times, so the last span is mostly the one that is needed.
  let span: Span = { from: 0, until: 0, offset: 0 };
  const offsetOf = (at: number): number => {
    if (at < span.from || at >= span.until) span = spanAt(offsetAt, at);
    return span.offset;
  };
  const dayAt = (at: number) => Math.floor((at + offsetOf(at)) / DAY_MS);
  return {
    name,
    dayAt,
    // A day may begin at another time than 00:00, where clocks are put forward at midnight.
    startOf: (day) => firstAt(day * DAY_MS - OFFSET_MAX_MS, day * DAY_MS + OFFSET_MAX_MS, (at) => dayAt(at) >= day),
  };
}

/** The part of a UTC day around an instant in which the offset is the same. An offset changes at most once on a day. */
function spanAt(offsetAt: (at: number) => number, at: number): Span {
  const from = Math.floor(at / DAY_MS) * DAY_MS;
  const until = from + DAY_MS;
  const [before, after] = [offsetAt(from), offsetAt(until)];
  if (before === after) return { from, until, offset: before };
  const change = firstAt(from, until, (each) => offsetAt(each) === after);
  return at < change ? { from, until: change, offset: before } : { from: change, until, offset: after };
}

/** The first whole second after `from`, and at the latest `until`, of which `is` is true from then on. */
function firstAt(from: number, until: number, is: (at: number) => boolean): number {
  let [low, high] = [from / 1000, until / 1000];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (is(middle * 1000)) high = middle;
    else low = middle;
  }
  return high * 1000;
}

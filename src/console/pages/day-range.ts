import { GatewayError } from '#errors';
import { DOCUMENTED } from '#http';
import { DAY_MS, dateOf, type DayRange, PERIODS, type TimeZone, UTC } from '#analytics';
import { objectOf, titled } from './route-schemas.ts';

const DAYS_MAX = 366;
/** If the query has no first day, the range begins this many days before its last day. */
const DAYS_DEFAULT = 7;
/** No date of four digits is earlier. */
const FIRST_DAY = Date.parse('0000-01-01') / DAY_MS;

const ISO = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

const IN_31 = '(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])';
const IN_30 = '(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)';
const IN_FEBRUARY = '02-(?:0[1-9]|1[0-9]|2[0-8])';
const LEAP_DAY = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29';
const DAY = `(?:[0-9]{4}-(?:${IN_31}|${IN_30}|${IN_FEBRUARY})|${LEAP_DAY})`;
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\\.[0-9]{1,9})?)?';
const ZONE = '(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])';

/** The form of a day that exists, for the reference. */
export const documentedDay = { pattern: `^${DAY}$` } as const;
/** The form of a day, or of a time with a time zone, for the reference. */
export const documentedInstant = { pattern: `^${DAY}(?:T${TIME}${ZONE})?$` } as const;
/** The same, but the time needs no time zone. */
const documentedTime = { pattern: `^${DAY}(?:T${TIME}${ZONE}?)?$` } as const;

/** The names that lists of calls have for the same. */
const alias = { type: 'string', maxLength: 40, [DOCUMENTED]: documentedTime } as const;

export const dayRangeSchema = {
  type: 'object',
  properties: {
    start_date: {
      type: 'string',
      maxLength: 40,
      description: 'First UTC day, `YYYY-MM-DD` or an ISO 8601 time within it. Default: 7 days before the last.',
      [DOCUMENTED]: documentedTime,
    },
    end_date: {
      type: 'string',
      maxLength: 40,
      description: `Last UTC day, the same forms. Default: today. At most ${DAYS_MAX} days in all.`,
      [DOCUMENTED]: documentedTime,
    },
    from: { ...alias, description: 'The same as `start_date`.' },
    to: { ...alias, description: 'The same as `end_date`.' },
  },
} as const;

export interface DayRangeQuery {
  readonly start_date?: string;
  readonly end_date?: string;
  readonly from?: string;
  readonly to?: string;
}

/**
 * Reads the days of a query string. Throws GatewayError `invalid_request` for an invalid date, a start after the end,
 * or too many days. A range without a start begins with a whole `period`.
 */
export function parseDayRange(
  query: DayRangeQuery,
  now: number,
  { zone = UTC, period = 'day' }: { readonly zone?: TimeZone; readonly period?: keyof typeof PERIODS | undefined } = {},
): DayRange {
  const last = dayOf(query, 'end_date', 'to') ?? zone.dayAt(now);
  const first = dayOf(query, 'start_date', 'from') ?? Math.max(PERIODS[period](last - DAYS_DEFAULT), FIRST_DAY);
  if (first > last)
    throw new GatewayError('invalid_request', `start_date is after end_date, ${dateOf(last)}`, { param: 'start_date' });
  if (last - first + 1 > DAYS_MAX)
    throw new GatewayError(
      'invalid_request',
      `Request at most ${DAYS_MAX} days at once: start_date can be ${dateOf(last - DAYS_MAX + 1)}, or end_date earlier`,
      { param: 'start_date' },
    );
  return { first, last };
}

function dayOf(query: DayRangeQuery, name: keyof DayRangeQuery, other: keyof DayRangeQuery): number | undefined {
  const text = query[name];
  const same = query[other];
  if (text !== undefined && same !== undefined)
    throw new GatewayError('invalid_request', `${other} is another name of ${name}: send one of them`, {
      param: other,
    });
  if (text !== undefined) return parseDay(text, name);
  return same === undefined ? undefined : parseDay(same, other);
}

/** Reads a day or a time within it, as days since 1970. Throws GatewayError `invalid_request` that names `param`. */
export function parseDay(text: string, param: string): number {
  const match = ISO.exec(text);
  // A time without a zone is UTC, like the days.
  const time = match ? Date.parse(match[2] === undefined && text.length > 10 ? `${text}Z` : text) : NaN;
  // The date in the text must exist: Date.parse would accept February 30 as March 2.
  if (!match || Number.isNaN(time) || dateOf(Date.parse(match[1]!) / DAY_MS) !== match[1]) {
    throw new GatewayError('invalid_request', `${param} must be a date such as 2026-01-31, or an ISO 8601 time`, {
      param,
    });
  }
  return Math.floor(time / DAY_MS);
}

export const dateRangeSchema = titled(
  'DateRange',
  objectOf({ start_date: { type: 'string', format: 'date' }, end_date: { type: 'string', format: 'date' } }),
);

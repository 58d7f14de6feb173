import { GatewayError } from '#wire';
import { objectOf, titled } from './answer-schemas.ts';
import { DAY_MS, dateOf, type DayRange } from '#analytics';

const DAYS_MAX = 366;
/** If the query has no first day, the range begins this many days before its last day. */
const DAYS_DEFAULT = 7;

const ISO = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

export const dayRangeSchema = {
  type: 'object',
  properties: {
    start_date: {
      type: 'string',
      maxLength: 40,
      description: 'First UTC day, `YYYY-MM-DD` or an ISO 8601 time within it. Default: 7 days before the last.',
    },
    end_date: {
      type: 'string',
      maxLength: 40,
      description: `Last UTC day, the same forms. Default: today. At most ${DAYS_MAX} days in all.`,
    },
  },
} as const;

/**
 * Reads the days of a query string. Throws GatewayError `invalid_request` for an invalid date, a start after the end,
 * or too many days.
 */
export function parseDayRange(
  query: { readonly start_date?: string; readonly end_date?: string },
  now: number,
): DayRange {
  const last = query.end_date === undefined ? Math.floor(now / DAY_MS) : parseDay(query.end_date, 'end_date');
  const first = query.start_date === undefined ? last - DAYS_DEFAULT : parseDay(query.start_date, 'start_date');
  if (first > last)
    throw new GatewayError('invalid_request', `start_date is after end_date, ${dateOf(last)}`, { param: 'start_date' });
  if (last - first + 1 > DAYS_MAX)
    throw new GatewayError('invalid_request', `Request at most ${DAYS_MAX} days at once`, { param: 'start_date' });
  return { first, last };
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

/** Schema of the days that an answer is about. */
export const dateRangeSchema = titled(
  'DateRange',
  objectOf({ start_date: { type: 'string', format: 'date' }, end_date: { type: 'string', format: 'date' } }),
);

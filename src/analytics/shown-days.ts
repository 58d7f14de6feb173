import { loadStatement, type Query } from '#store';
import { DEVELOPMENT, DEVELOPMENT_HASH } from './call-facts.ts';
import type { DayRange } from './day-range.ts';
import { rowsText } from './rows-text.ts';

/** The days and calls that everybody may see. */
export interface Shown {
  /** The last day that is shown. */
  readonly until: number;
  /** A day with fewer active users is not shown; of a service, a day with fewer users of the service. */
  readonly usersMin: number;
  /** Calls of the development account count. */
  readonly development: boolean;
}

export interface Users {
  /** Active users by day. */
  readonly byDay: ReadonlyMap<number, number>;
  /** Those of them by day who were not active in the range before. */
  readonly newcomers: ReadonlyMap<number, number>;
  /** The hash that is left out of all counts. */
  readonly without: bigint;
  /** A day on which nothing was called is hidden by its date alone. */
  isHidden(day: number, hasCalls: boolean): boolean;
}

const HIDDEN_SERVICES = loadStatement(import.meta.url, './sql/hidden-services.sql');
const USERS_BY_DAY = loadStatement(import.meta.url, './sql/users-by-day.sql');
/** No account has it. */
const NOBODY_HASH = 0n;

/** The active users of each day, and the days that are not shown for their sake. */
export async function findUsers(query: Query, { first, last }: DayRange, shown: Shown): Promise<Users> {
  const without = shown.development ? NOBODY_HASH : DEVELOPMENT_HASH;
  const rows = await query(USERS_BY_DAY, [first, last, without]);
  const byDay = new Map(rows.map((row) => [Number(row['day']), Number(row['users'])]));
  const newcomers = new Map(rows.map((row) => [Number(row['day']), Number(row['newcomers'])]));
  return {
    byDay,
    newcomers,
    without,
    isHidden: (day, hasCalls) => day > shown.until || (hasCalls && (byDay.get(day) ?? 0) < shown.usersMin),
  };
}

/** The account that does not count as a user; empty for none. */
const uncountedAccount = ({ development }: Shown): string => (development ? '' : DEVELOPMENT);

/** Days of services that are not shown. */
interface HiddenServices {
  has(day: number, primitive: string, service: string): boolean;
  /** Their rows (day, primitive, service) as a parameter of a statement. */
  readonly text: string;
}

/** The days on which a service was called and had too few users, of one service or of all. */
export async function findHiddenServices(
  query: Query,
  { first, last }: DayRange,
  shown: Shown,
  { primitive, service } = { primitive: '', service: '' },
): Promise<HiddenServices> {
  if (shown.usersMin === 0) return { has: () => false, text: rowsText([]) };
  const development = shown.development ? 1 : 0;
  const params = [first, last, development, uncountedAccount(shown), shown.usersMin, primitive, service];
  const rows = await query(HIDDEN_SERVICES, params);
  const hidden = rows.map((row) => [Number(row['day']), row['primitive'] as string, row['service'] as string] as const);
  const keys = new Set(hidden.map((each) => keyOf(...each)));
  return { has: (...of) => keys.has(keyOf(...of)), text: rowsText(hidden) };
}

const keyOf = (day: number, primitive: string, service: string): string => `${day} ${primitive} ${service}`;

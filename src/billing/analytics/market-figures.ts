import { partsOfOffer } from '#billing/amounts';
import { loadStatements, rowsParam, type Query, type Row } from '#store';
import { daysOf, type DayRange } from './call-facts.ts';
import { findState } from './roll-up-state.ts';
import { findHiddenServices, findUsers, type PublicRange, type Users } from './shown-days.ts';

/** Sums of calls. `charged` is micro-USD. */
export interface MarketSums {
  readonly requests: number;
  readonly failed: number;
  readonly charged: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
}

export interface ListingSums {
  readonly primitive: string;
  readonly service: string;
  readonly requests: number;
  readonly charged: bigint;
  readonly tokens: number;
}

/** The figures of the whole market in a range of days. Hidden days are in no sum. */
export interface MarketFigures {
  readonly days: readonly MarketDay[];
  readonly totals: MarketSums;
  readonly byPrimitive: ReadonlyMap<string, MarketSums>;
  readonly activeUsers: number;
  readonly activeProviders: number;
  readonly knownUsers: number;
  readonly knownWallets: number;
  /** Every service with a settled call. Those with the highest charge come first, then those with the most requests. */
  readonly listings: readonly ListingSums[];
  /** When the newest counted call was resolved, in epoch milliseconds. 0 before the first call. */
  readonly asOf: number;
}

interface MarketDay {
  readonly day: number;
  readonly isHidden: boolean;
  readonly requests: number;
  readonly charged: bigint;
  readonly users: number;
  readonly providers: number;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', [
  'marketByDay',
  'usersOfHiddenDays',
  'providersByDay',
  'listingsOfDays',
  'countKnownUsers',
  'allAttempts',
]);

/** Reads the figures of the market. `query` should read from one snapshot. */
export async function findMarket(query: Query, range: DayRange, publicRange: PublicRange): Promise<MarketFigures> {
  const { first, last } = range;
  const { asOf } = await findState(query);
  const { sums, users, isHidden, listings } = await findDays(query, range, publicRange);
  const activeUsers = await countUsers(query, range, users, isHidden);
  const allProviders = await query(SQL.providersByDay, [first, last, publicRange.development ? 1 : 0]);
  const providers = allProviders.filter(({ day }) => !isHidden(Number(day)));
  const providersOf = Map.groupBy(providers, ({ day }) => Number(day));
  const known = (await query(SQL.countKnownUsers, [Math.min(last, publicRange.until), users.without]))[0]!;
  const shownRows = [...sums].flatMap(([day, rows]) => (isHidden(day) ? [] : rows));
  return {
    days: daysOf(range).map((day) => {
      if (isHidden(day)) return { day, isHidden: true, requests: 0, charged: 0n, users: 0, providers: 0 };
      const { requests, charged } = added(sums.get(day) ?? []);
      const ofDay = providersOf.get(day)?.length ?? 0;
      return { day, isHidden: false, requests, charged, users: users.byDay.get(day) ?? 0, providers: ofDay };
    }),
    totals: added(shownRows),
    byPrimitive: new Map(
      [...Map.groupBy(shownRows, (row) => row['primitive'] as string)].map(([name, rows]) => [name, added(rows)]),
    ),
    activeUsers,
    activeProviders: new Set(providers.map(({ provider }) => provider)).size,
    knownUsers: Number(known['users']),
    knownWallets: Number(known['wallets']),
    listings: listings.sort(byUse),
    asOf,
  };
}

/** Reads the sums by day, which days are hidden, and the services of the visible days. */
async function findDays(query: Query, range: DayRange, publicRange: PublicRange) {
  const { first, last } = range;
  const development = publicRange.development ? 1 : 0;
  const sums = Map.groupBy(await query(SQL.marketByDay, [first, last, development]), (row) => Number(row['day']));
  const users = await findUsers(query, range, publicRange);
  const isHidden = (day: number) => users.isHidden(day, sums.has(day));
  const days = daysOf(range).filter(isHidden);
  const hidden = rowsParam(days.map((day) => [day]));
  const hiddenServices = await findHiddenServices(query, range, publicRange);
  const rows = await query(SQL.listingsOfDays, [first, last, development, hidden, hiddenServices.text]);
  return { sums, users, isHidden, hidden, hiddenServices, listings: rows.map(toListing) };
}

/**
 * Counts the users of the visible days. Most users are newcomers of a visible day. Only those who were new on a hidden
 * day need a further query.
 */
async function countUsers(
  query: Query,
  { first, last }: DayRange,
  { byDay, newcomers, without }: Users,
  isHidden: (day: number) => boolean,
): Promise<number> {
  let count = 0;
  for (const [day, came] of newcomers) if (!isHidden(day)) count += came;
  const lastShown = Math.max(...[...byDay.keys()].filter((day) => !isHidden(day)));
  const hidden = [...byDay.keys()].filter((day) => isHidden(day) && day < lastShown);
  if (hidden.length === 0) return count;
  const rows = await query(SQL.usersOfHiddenDays, [first, last, without, rowsParam(hidden.map((day) => [day]))]);
  return count + Number(rows[0]!['users']);
}

interface ListingAttempts {
  readonly successes: number;
  readonly failures: number;
}

/** Reads every service that was called or attempted in a range, by use, with the attempts at its providers. */
export async function findListings(
  query: Query,
  range: DayRange,
  publicRange: PublicRange,
): Promise<{ readonly listings: readonly (ListingSums & ListingAttempts)[]; readonly asOf: number }> {
  const { first, last } = range;
  const { asOf } = await findState(query);
  const { hidden, hiddenServices, listings } = await findDays(query, range, publicRange);
  const sums = new Map<string, ListingSums & { successes: number; failures: number }>();
  for (const listing of listings)
    sums.set(`${listing.primitive} ${listing.service}`, { ...listing, successes: 0, failures: 0 });
  for (const row of await query(SQL.allAttempts, [first, last, hidden, publicRange.usersMin > 0 ? 1 : 0])) {
    const { primitive, service } = partsOfOffer(row['offer'] as string);
    if (hiddenServices.has(Number(row['day']), primitive, service)) continue;
    const key = `${primitive} ${service}`;
    let listing = sums.get(key);
    if (!listing)
      sums.set(key, (listing = { primitive, service, requests: 0, charged: 0n, tokens: 0, successes: 0, failures: 0 }));
    listing.successes += Number(row['successes']);
    listing.failures += Number(row['failures']);
  }
  return { listings: [...sums.values()].sort(byUse), asOf };
}

function added(rows: readonly Row[]): MarketSums {
  const sums = { requests: 0, failed: 0, charged: 0n, prompt: 0, completion: 0, reasoning: 0, cached: 0 };
  for (const row of rows) {
    sums.requests += Number(row['requests']);
    sums.failed += Number(row['failed']);
    sums.charged += row['charged'] as bigint;
    sums.prompt += Number(row['prompt']);
    sums.completion += Number(row['completion']);
    sums.reasoning += Number(row['reasoning']);
    sums.cached += Number(row['cached']);
  }
  return sums;
}

const toListing = (row: Row): ListingSums => ({
  primitive: row['primitive'] as string,
  service: row['service'] as string,
  requests: Number(row['requests']),
  charged: row['charged'] as bigint,
  tokens: Number(row['tokens']),
});

const byUse = (a: ListingSums, b: ListingSums): number =>
  Number(b.charged - a.charged) || b.requests - a.requests || (a.service < b.service ? -1 : 1);

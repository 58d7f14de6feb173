import { offerId } from '#billing/amounts';
import { loadStatements, rowsParam, type Query, type Row } from '#store';
import { daysOf, type DayRange, DAY_MS } from './call-facts.ts';
import { findState } from './roll-up-state.ts';
import { quantileOf } from './sums.ts';
import { findHiddenServices, type PublicRange } from './shown-days.ts';

interface ListedService {
  readonly primitive: string;
  readonly service: string;
  /** Ids of the providers that offer it now. */
  readonly providers: readonly string[];
}

/** Sums of calls. `charged` is micro-USD. */
interface ListingTotals {
  readonly requests: number;
  readonly failed: number;
  readonly charged: bigint;
  readonly prompt: number;
  readonly completion: number;
  readonly reasoning: number;
  readonly cached: number;
  readonly images: number;
  readonly seconds: number;
}

/** The figures of one service in a range of days. Hidden days are not in the totals. */
export interface ListingFigures {
  readonly totals: ListingTotals;
  readonly days: readonly (ListingTotals & { readonly day: number; readonly isHidden: boolean })[];
  /** The providers with the most settled calls come first. */
  readonly providers: readonly ListingProvider[];
  /** When the newest counted call was resolved, in epoch milliseconds. 0 before the first call. */
  readonly asOf: number;
}

export interface ListingProvider {
  readonly id: string;
  readonly totals: ListingTotals;
  readonly attempts: Attempts;
  /** Milliseconds. null if no call was timed. */
  readonly firstByteMs: Quantiles | null;
  readonly durationMs: Quantiles | null;
  /** Completion tokens per second. null if no call of a model was timed. */
  readonly throughput: number | null;
  readonly days: readonly (Attempts & {
    readonly day: number;
    readonly isHidden: boolean;
    readonly requests: number;
  })[];
  /** The versions of the provider's prices, oldest first. `rates` is JSON text. */
  readonly prices: readonly { readonly id: string; readonly rates: string; readonly from: number }[];
}

interface Attempts {
  readonly successes: number;
  readonly failures: number;
}

interface Quantiles {
  readonly p50: number;
  readonly p95: number;
}

const SQL = loadStatements(import.meta.url, './sql/figures.sql', [
  'listingByDay',
  'isCalled',
  'timesOfListing',
  'attemptsOfOffers',
  'pricesOfListing',
  'recentTimes',
  'recentSpeeds',
]);

/** Whether a service was called in a range. Counts only calls that are public. */
export async function isCalled(
  query: Query,
  { primitive, service }: Pick<ListedService, 'primitive' | 'service'>,
  { first, last }: DayRange,
  { development }: PublicRange,
): Promise<boolean> {
  return (await query(SQL.isCalled, [service, primitive, first, last, development ? 1 : 0])).length > 0;
}

/** Reads the figures of a service. Returns null if nothing is known of it. */
export async function findListing(
  query: Query,
  { primitive, service, providers: offering }: ListedService,
  range: DayRange,
  publicRange: PublicRange,
): Promise<ListingFigures | null> {
  const { first, last } = range;
  const development = publicRange.development ? 1 : 0;
  const all = await query(SQL.listingByDay, [service, primitive, first, last, development]);
  const prices = await query(SQL.pricesOfListing, [service]);
  if (all.length === 0 && offering.length === 0) return null;
  const hiddenServices = await findHiddenServices(query, range, publicRange, { primitive, service });
  const isHidden = (day: number) => day > publicRange.until || hiddenServices.has(day, primitive, service);
  const rows = all.filter((row) => !isHidden(Number(row['day'])));
  const names = [...new Set([...offering, ...rows.map((row) => row['provider'] as string)])].filter((id) => id !== '');
  const offerOf = (provider: string) => offerId({ primitive, provider, service });
  const attempts = await query(SQL.attemptsOfOffers, [rowsParam(names.map((id) => [offerOf(id)])), first, last]);
  const shownDays = daysOf(range).filter((day) => !isHidden(day));
  const times = await query(SQL.timesOfListing, [
    service,
    primitive,
    rowsParam(shownDays.map((day) => [day])),
    development,
  ]);
  const { asOf } = await findState(query);

  const providerOf = (id: string): ListingProvider => {
    const own = rows.filter(({ provider }) => provider === id);
    const tried = attempts.filter(({ offer, day }) => offer === offerOf(id) && !isHidden(Number(day)));
    const timed = times.filter(({ provider }) => provider === id);
    const ms = sumOf(own, 'timed_ms');
    return {
      id,
      totals: totalsOf(own),
      attempts: attemptsOf(tried),
      firstByteMs: quantilesOf(timed, 'first_byte'),
      durationMs: quantilesOf(timed, 'duration'),
      throughput: ms === 0 ? null : (sumOf(own, 'timed_tokens') * 1000) / ms,
      days: daysOf(range).map((day) => ({
        day,
        isHidden: isHidden(day),
        requests: sumOf(onDay(own, day), 'requests'),
        ...attemptsOf(onDay(tried, day)),
      })),
      prices: prices
        .filter(({ provider }) => provider === id)
        .map((row) => ({ id: row['id'] as string, rates: row['rates'] as string, from: Number(row['created_at']) })),
    };
  };
  return {
    totals: totalsOf(rows),
    days: daysOf(range).map((day) => ({ day, isHidden: isHidden(day), ...totalsOf(onDay(rows, day)) })),
    providers: names.map(providerOf).sort((a, b) => b.totals.requests - a.totals.requests || (a.id < b.id ? -1 : 1)),
    asOf,
  };
}

const onDay = (rows: readonly Row[], day: number): readonly Row[] => rows.filter((row) => Number(row['day']) === day);
const sumOf = (rows: readonly Row[], column: string): number =>
  rows.reduce((sum, row) => sum + Number(row[column] ?? 0n), 0);

const totalsOf = (rows: readonly Row[]): ListingTotals => ({
  requests: sumOf(rows, 'requests'),
  failed: sumOf(rows, 'failed'),
  charged: rows.reduce((sum, row) => sum + (row['charged'] as bigint), 0n),
  prompt: sumOf(rows, 'prompt'),
  completion: sumOf(rows, 'completion'),
  reasoning: sumOf(rows, 'reasoning'),
  cached: sumOf(rows, 'cached'),
  images: sumOf(rows, 'images'),
  seconds: sumOf(rows, 'seconds'),
});

const attemptsOf = (rows: readonly Row[]): Attempts => ({
  successes: sumOf(rows, 'successes'),
  failures: sumOf(rows, 'failures'),
});

function quantilesOf(times: readonly Row[], measure: string): Quantiles | null {
  const buckets = new Map(
    times
      .filter((row) => row['measure'] === measure)
      .map((row) => [Number(row['bucket']), Number(row['calls'])] as const),
  );
  const p50 = quantileOf(buckets, 0.5);
  return p50 === null ? null : { p50, p95: quantileOf(buckets, 0.95)! };
}

interface RecentTimes {
  /** Id of the offer, made of primitive, provider and name. */
  readonly offer: string;
  /** A sample of times to the first byte in milliseconds, distributed like those of the calls. */
  readonly firstByteMs: readonly number[];
  /** null for an offer without timed tokens. */
  readonly tokensPerSecond: number | null;
}

/** Days that are read: today and yesterday. */
const RECENT_DAYS = 2;
const SAMPLES = 20;

/** Reads how fast offers were on the last two days. `now` is in epoch milliseconds. */
export async function findRecentTimes(query: Query, now: number): Promise<readonly RecentTimes[]> {
  const last = Math.floor(now / DAY_MS);
  const days = [last - RECENT_DAYS + 1, last];
  const buckets = new Map<string, Map<number, number>>();
  const offerOf = ({ primitive, provider, service }: Row) =>
    offerId({ primitive: `${primitive}`, provider: `${provider}`, service: `${service}` });
  for (const row of await query(SQL.recentTimes, days)) {
    const offer = offerOf(row);
    let own = buckets.get(offer);
    if (!own) buckets.set(offer, (own = new Map<number, number>()));
    own.set(Number(row['bucket']), Number(row['calls']));
  }
  const speeds = new Map(
    (await query(SQL.recentSpeeds, days)).map((row) => [
      offerOf(row),
      (Number(row['tokens']) * 1000) / Number(row['ms']),
    ]),
  );
  return [...new Set([...buckets.keys(), ...speeds.keys()])].map((offer) => ({
    offer,
    firstByteMs: Array.from({ length: SAMPLES }, (_, index) =>
      quantileOf(buckets.get(offer) ?? new Map<number, number>(), (index + 0.5) / SAMPLES)!,
    ).filter((ms) => ms !== null),
    tokensPerSecond: speeds.get(offer) ?? null,
  }));
}

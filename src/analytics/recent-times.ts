import { offerId } from '#billing';
import { loadStatement, type Query, type Row } from '#store';
import { DAY_MS } from './day-range.ts';
import { quantileOf } from './time-buckets.ts';

/** The recent speed of an offer. */
interface RecentTimes {
  /** Id of the offer, made of primitive, provider and name. */
  readonly offer: string;
  /** A sample of times to the first byte in milliseconds, distributed like those of the calls. */
  readonly firstByteMs: readonly number[];
  /** null for an offer without timed tokens. */
  readonly tokensPerSecond: number | null;
}

const TIMES = loadStatement(import.meta.url, './sql/recent-times.sql');
const SPEEDS = loadStatement(import.meta.url, './sql/recent-speeds.sql');

/** Days that are read: today and yesterday. */
const DAYS = 2;
/** Number of times in the sample. */
const SAMPLES = 20;

/** Reads how fast offers were on the last two days. `now` is in epoch milliseconds. */
export async function findRecentTimes(query: Query, now: number): Promise<readonly RecentTimes[]> {
  const last = Math.floor(now / DAY_MS);
  const days = [last - DAYS + 1, last];
  const buckets = new Map<string, Map<number, number>>();
  const offerOf = ({ primitive, provider, service }: Row) =>
    offerId({ primitive: `${primitive}`, provider: `${provider}`, service: `${service}` });
  for (const row of await query(TIMES, days)) {
    const offer = offerOf(row);
    let own = buckets.get(offer);
    if (!own) buckets.set(offer, (own = new Map<number, number>()));
    own.set(Number(row['bucket']), Number(row['calls']));
  }
  const speeds = new Map(
    (await query(SPEEDS, days)).map((row) => [offerOf(row), (Number(row['tokens']) * 1000) / Number(row['ms'])]),
  );
  return [...new Set([...buckets.keys(), ...speeds.keys()])].map((offer) => ({
    offer,
    firstByteMs: Array.from({ length: SAMPLES }, (_, index) =>
      quantileOf(buckets.get(offer) ?? new Map<number, number>(), (index + 0.5) / SAMPLES)!,
    ).filter((ms) => ms !== null),
    tokensPerSecond: speeds.get(offer) ?? null,
  }));
}

import { offerId } from '#billing';
import { loadStatement, type Query, type Row } from '#store';
import { DAY_MS } from './day-range.ts';
import { quantileOf } from './time-buckets.ts';

/** How fast an offer was lately. */
interface RecentTimes {
  /** Id of the offer: primitive, provider and name. */
  readonly offer: string;
  /** Times to the first byte in milliseconds, spread as those of its calls. */
  readonly firstByteMs: readonly number[];
  /** null for an offer without timed tokens. */
  readonly tokensPerSecond: number | null;
}

const TIMES = loadStatement(import.meta.url, './sql/recent-times.sql');
const SPEEDS = loadStatement(import.meta.url, './sql/recent-speeds.sql');

/** Days that tell it: today and the day before. */
const DAYS = 2;
/** Times that stand for all of an offer. */
const SAMPLES = 20;

/** How fast offers were on the last two days. `now`: epoch milliseconds. */
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

import { loadStatements, type Database, type Query, type Row } from '#store';
import { earningsTotals } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import { PROVIDER_FLAGS } from '#call/flags';
import type { DayRange } from '#analytics';

/** A provider's earnings, read from one snapshot. Amounts are net of the operator's fee. */
export interface Earnings {
  readonly available: MicroUsd;
  readonly total: MicroUsd;
  readonly entries: readonly EarningsEntry[];
}

/** The settled calls of one service on one UTC day. */
export interface EarningsEntry {
  /** Days since 1970-01-01. */
  readonly day: number;
  readonly service: string;
  /** null if the call's record doesn't say. */
  readonly primitive: string | null;
  readonly requests: number;
  readonly earned: MicroUsd;
  /** Number of calls whose reply broke a rule, by rule. A call can break several rules. */
  readonly flags: Readonly<Record<string, number>>;
}

export type FindEarnings = (provider: string, range: DayRange) => Promise<Earnings>;

const SQL = loadStatements(import.meta.url, './sql/earnings.sql', [
  'earningsSliceEnd',
  'earningsSlice',
  'earningsSliceFlagged',
  'archivedEarnings',
  'undroppedUntil',
]);

const DAY_MS = 86_400_000;
/** The most calls that one statement reads, because the embedded engine sorts them in memory. */
const SLICE_CALLS = 20_000;

/**
 * Sums a provider's settled calls, slice by slice, so that memory is bounded. It reads in parallel to the writers, so
 * a busy provider's reports may be slow, but they don't delay calls.
 */
export function createEarnings(
  database: Pick<Database, 'snapshot'>,
  { sliceCalls = SLICE_CALLS }: { readonly sliceCalls?: number } = {},
): FindEarnings {
  const running = new Map<string, Promise<Earnings>>();
  return (provider, range) => {
    const key = `${range.first} ${range.last} ${provider}`;
    let reading = running.get(key);
    if (!reading) {
      reading = database
        .snapshot(provider, (query) => add(query, provider, range, sliceCalls))
        .finally(() => running.delete(key));
      running.set(key, reading);
    }
    return reading;
  };
}

async function add(query: Query, provider: string, range: DayRange, sliceCalls: number): Promise<Earnings> {
  const entries = new Map<
    string,
    { -readonly [K in keyof EarningsEntry]: EarningsEntry[K] } & { flags: Record<string, number> }
  >();
  const entryOf = (row: Row) => {
    const key = `${row['day'] as bigint} ${row['opening'] as string} ${row['service'] as string}`;
    let entry = entries.get(key);
    if (!entry) {
      const primitive = OPENING.exec(row['opening'] as string)?.[1] ?? null;
      entry = {
        day: Number(row['day']),
        service: row['service'] as string,
        primitive,
        requests: 0,
        earned: 0n,
        flags: {},
      };
      entries.set(key, entry);
    }
    return entry;
  };

  for (const row of await query(SQL.archivedEarnings, [provider, range.first, range.last + 1])) {
    const entry = entryOf(row);
    entry.requests += Number(row['requests']);
    entry.earned += row['earned'] as bigint;
    const counts = JSON.parse(row['flags'] as string) as Readonly<Record<string, number>>;
    for (const flag of PROVIDER_FLAGS)
      if (counts[flag] !== undefined) entry.flags[flag] = (entry.flags[flag] ?? 0) + counts[flag];
  }
  // Calls that are in an archive and not dropped yet must not be counted twice.
  const [undropped] = await query(SQL.undroppedUntil);
  const until = (range.last + 1) * DAY_MS;
  let from = Math.max(range.first * DAY_MS, Number(undropped!['until']));
  while (from < until) {
    const [next] = await query(SQL.earningsSliceEnd, [provider, from, until, sliceCalls]);
    // The end is at least a millisecond after the start, in case one millisecond fills a whole slice.
    const end = next ? Math.max(Number(next['resolved_at']), from + 1) : until;
    const slice = [provider, from, end];
    let flagged = false;
    for (const row of await query(SQL.earningsSlice, slice)) {
      const entry = entryOf(row);
      entry.requests += Number(row['requests']);
      entry.earned += row['earned'] as bigint;
      flagged ||= row['flagged'] !== 0n;
    }
    if (flagged) {
      for (const flag of PROVIDER_FLAGS)
        for (const row of await query(SQL.earningsSliceFlagged, [
          ...slice,
          `%"flags":[%"${flag.replaceAll('_', '\\_')}"%`,
        ])) {
          const { flags } = entryOf(row);
          flags[flag] = (flags[flag] ?? 0) + Number(row['requests']);
        }
    }
    from = end;
  }
  const { available, earned } = await earningsTotals(query, provider);
  return { available, total: earned, entries: [...entries.values()] };
}

const OPENING = /^\{"primitive":"([a-z]+)/;

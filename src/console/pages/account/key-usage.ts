import { dropOldest } from '#wire';
import { loadStatements, type Database, type Row } from '#store';
import type { MicroUsd } from '#billing/amounts';
import { periodAt } from '#accounts/names';

/** The charges for a key's calls that began in the current UTC day, week and month, in micro-USD. */
interface KeyUsage {
  readonly daily: MicroUsd;
  readonly weekly: MicroUsd;
  readonly monthly: MicroUsd;
}

/** Usage by the hash of the key. Keys without calls in these periods are missing. */
export type FindKeyUsage = (account: string) => Promise<ReadonlyMap<string, KeyUsage>>;

export const NO_USAGE: KeyUsage = { daily: 0n, weekly: 0n, monthly: 0n };

const SQL = loadStatements(import.meta.url, './sql/key-usage.sql', ['keyUsage']);
const DAY_MS = 86_400_000;
/**
 * The sums of an account with many calls are cached for this many times the duration of the query. The embedded engine
 * takes half a second for 20,000 calls.
 */
const REST_TIMES = 20;
const KEPT_MAX = 1_000;
/**
 * Reading this many calls takes a few milliseconds. More calls are read in a snapshot, in parallel to the writers.
 * Opening a snapshot takes longer than reading few calls.
 */
const FEW = 5_000;
const ALL = Number.MAX_SAFE_INTEGER;

type UsageDatabase = Pick<Database, 'query' | 'snapshot'>;

interface CachedUsage {
  readonly usage: Promise<ReadonlyMap<string, KeyUsage>>;
  /** Time of `performance.now()` until which the sums are used. */
  until: number;
}

/**
 * Sums the charges in the ledger's records of an account. The sums of an account with many calls are cached for a
 * while. Rejects with the database's error.
 */
export function createKeyUsage(database: UsageDatabase, now: () => number): FindKeyUsage {
  const cache = new Map<string, CachedUsage>();
  return (account) => {
    const known = cache.get(account);
    if (known && performance.now() < known.until) return known.usage;
    const begun = performance.now();
    const reading = find(database, account, now());
    const entry: CachedUsage = { usage: reading.then(({ usage }) => usage), until: Infinity };
    cache.delete(account);
    cache.set(account, entry);
    dropOldest(cache, KEPT_MAX);
    const over = (many: boolean) => {
      const ended = performance.now();
      entry.until = many ? ended + (ended - begun) * REST_TIMES : 0;
    };
    reading.then(
      ({ many }) => over(many),
      () => over(false),
    );
    return entry.usage;
  };
}

interface AccountUsage {
  readonly usage: ReadonlyMap<string, KeyUsage>;
  readonly many: boolean;
}

async function find(database: UsageDatabase, account: string, now: number): Promise<AccountUsage> {
  const [day, week, month] = [
    periodAt('daily', now).start,
    periodAt('weekly', now).start,
    periodAt('monthly', now).start,
  ];
  const since = Math.min(week, month);
  let rows: readonly Row[] = await database.query(SQL.keyUsage, [account, since, FEW]);
  const many = rows.reduce((sum, row) => sum + Number(row['calls']), 0) >= FEW;
  if (many) rows = await database.snapshot(account, (query) => query(SQL.keyUsage, [account, since, ALL]));
  const sums = new Map<string, { daily: bigint; weekly: bigint; monthly: bigint }>();
  for (const row of rows) {
    const [hash = ''] = (row['budget'] as string).split(':');
    let usage = sums.get(hash);
    if (!usage) sums.set(hash, (usage = { ...NO_USAGE }));
    const begun = Number(row['day']) * DAY_MS;
    const charged = row['charged'] as bigint;
    if (begun >= day) usage.daily += charged;
    if (begun >= week) usage.weekly += charged;
    if (begun >= month) usage.monthly += charged;
  }
  return { usage: sums, many };
}

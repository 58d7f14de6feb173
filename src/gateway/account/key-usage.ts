import type { MicroUsd } from '#billing';
import { loadStatement, type Database, type Row } from '#store';
import { periodAt } from '../auth/spend-period.ts';

/** What the calls of a key that began in the current UTC day, week and month were charged. */
export interface KeyUsage {
  readonly daily: MicroUsd;
  readonly weekly: MicroUsd;
  readonly monthly: MicroUsd;
}

/** By the hash of the key; a key that was not used lately is not in it. */
export type FindKeyUsage = (account: string) => Promise<ReadonlyMap<string, KeyUsage>>;

export const NO_USAGE: KeyUsage = { daily: 0n, weekly: 0n, monthly: 0n };

const USAGE = loadStatement(import.meta.url, './sql/key-usage.sql');
const DAY_MS = 86_400_000;
/** What took no longer is added up anew each time. */
const QUICK_MS = 1_000;
/** An account with millions of calls a month takes seconds. Its own questions must not have this done all the time: it rests so many times as long. */
const REST_TIMES = 20;
const KEPT_MAX = 1_000;
/** Calls that are added up in a few milliseconds. More are read on a connection of their own, beside the writers; opening one takes longer than that. */
const FEW = 5_000;
const ALL = Number.MAX_SAFE_INTEGER;

type Reading = Pick<Database, 'query' | 'snapshot'>;

interface Kept {
  readonly usage: Promise<ReadonlyMap<string, KeyUsage>>;
  /** By `performance.now()`. */
  until: number;
}

/** Adds up the ledger's records of an account. What took long is kept for a while. Rejects with the database's error. */
export function createKeyUsage(database: Reading, now: () => number): FindKeyUsage {
  const kept = new Map<string, Kept>();
  return (account) => {
    const known = kept.get(account);
    if (known && performance.now() < known.until) return known.usage;
    const begun = performance.now();
    const made: Kept = { usage: find(database, account, now()), until: Infinity };
    kept.delete(account);
    kept.set(account, made);
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value!);
    const over = () => {
      const ended = performance.now();
      made.until = ended - begun > QUICK_MS ? ended + (ended - begun) * REST_TIMES : 0;
    };
    made.usage.then(over, () => (made.until = 0));
    return made.usage;
  };
}

async function find(database: Reading, account: string, now: number): Promise<ReadonlyMap<string, KeyUsage>> {
  const [day, week, month] = [periodAt('daily', now).start, periodAt('weekly', now).start, periodAt('monthly', now).start];
  const since = Math.min(week, month);
  let rows: readonly Row[] = await database.query(USAGE, [account, since, FEW]);
  if (rows.reduce((sum, row) => sum + Number(row['calls']), 0) >= FEW) rows = await database.snapshot((query) => query(USAGE, [account, since, ALL]));
  const found = new Map<string, { daily: bigint; weekly: bigint; monthly: bigint }>();
  for (const row of rows) {
    const [hash = ''] = (row['budget'] as string).split(':');
    let usage = found.get(hash);
    if (!usage) found.set(hash, (usage = { ...NO_USAGE }));
    const begun = Number(row['day']) * DAY_MS;
    const charged = row['charged'] as bigint;
    if (begun >= day) usage.daily += charged;
    if (begun >= week) usage.weekly += charged;
    if (begun >= month) usage.monthly += charged;
  }
  return found;
}

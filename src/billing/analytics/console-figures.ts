import { earningsOf, FEES, SUSPENSE } from '#billing';
import type { MicroUsd } from '#billing/amounts';
import { listParam, loadStatements, type Query, type Row } from '#store';
import { DAY_MS } from './call-facts.ts';
import { findState } from './roll-up-state.ts';
import { DAY, HOUR, HOUR_MS, type Span } from './sums.ts';

/** The ranges of the operator's console. The last hour or day of a range is the running one. */
export const CONSOLE_RANGES = {
  '24h': { span: HOUR, length: 24 },
  '7d': { span: DAY, length: 7 },
  '30d': { span: DAY, length: 30 },
} as const satisfies Record<string, { readonly span: Span; readonly length: number }>;
export type ConsoleRange = keyof typeof CONSOLE_RANGES;

export interface ConsoleSums {
  readonly requests: number;
  readonly failed: number;
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  /** The operator pays vendors so much for the calls whose cost is known. */
  readonly cost: MicroUsd;
  /** The charges of these calls, without the fee. */
  readonly costBase: MicroUsd;
  /** Served calls whose cost is unknown; those at providers that are not the operator's, too. */
  readonly uncosted: number;
  /** Of prompts and completions. */
  readonly tokens: number;
}

export interface OfferSums extends ConsoleSums {
  readonly primitive: string;
  readonly service: string;
  /** Id of the provider; '' where nobody served. */
  readonly provider: string;
  /** See causeOf. '' for the calls that were served. */
  readonly cause: string;
}

interface AccountSums extends Omit<ConsoleSums, 'cost' | 'costBase' | 'uncosted' | 'tokens'> {
  readonly account: string;
}

const SQL = loadStatements(import.meta.url, './sql/console.sql', [
  'offersInSpan',
  'timesInSpan',
  'accountsInSpan',
  'countAccountsInSpan',
  'attemptsInDays',
  'priceTimes',
  'restingMoney',
]);

/** The bounds of a range at `now`, in hours or days, and in epoch milliseconds. */
export function boundsOf(range: ConsoleRange, now: number) {
  const { span, length } = CONSOLE_RANGES[range];
  const unitMs = span === HOUR ? HOUR_MS : DAY_MS;
  const last = Math.floor(now / unitMs);
  const first = last - length + 1;
  return { span, first, last, unitMs, fromMs: first * unitMs };
}

/** Earnings of the operator: the fees, and of own offers whose cost is known the rest above that cost. */
export const marginOf = ({ fee, cost, costBase }: Pick<ConsoleSums, 'fee' | 'cost' | 'costBase'>): MicroUsd =>
  fee + costBase - cost;

export async function findOfferSums(query: Query, range: ConsoleRange, now: number): Promise<readonly OfferSums[]> {
  const { span, first, last } = boundsOf(range, now);
  return (await query(SQL.offersInSpan, [span, first, last])).map((row) => ({
    primitive: row['primitive'] as string,
    service: row['service'] as string,
    provider: row['provider'] as string,
    cause: row['cause'] as string,
    ...sumsOf(row),
  }));
}

/** The sums of each hour or day of a range, those without calls too. `atMs`: when it began. */
export async function findTimeSums(
  query: Query,
  range: ConsoleRange,
  now: number,
): Promise<readonly (ConsoleSums & { readonly atMs: number })[]> {
  const { span, first, last, unitMs } = boundsOf(range, now);
  const rows = new Map((await query(SQL.timesInSpan, [span, first, last])).map((row) => [Number(row['at']), row]));
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const row = rows.get(first + index);
    return { atMs: (first + index) * unitMs, ...(row === undefined ? NO_CALLS : sumsOf(row)) };
  });
}

export async function findAccountSums(
  query: Query,
  range: ConsoleRange,
  { now, limit }: { readonly now: number; readonly limit: number },
): Promise<{ readonly top: readonly AccountSums[]; readonly accounts: number }> {
  const { span, first, last } = boundsOf(range, now);
  const [rows, [all]] = await Promise.all([
    query(SQL.accountsInSpan, [span, first, last, limit]),
    query(SQL.countAccountsInSpan, [span, first, last]),
  ]);
  const top = rows.map((row) => ({
    account: row['account'] as string,
    requests: Number(row['requests']),
    failed: Number(row['failed']),
    charged: row['charged'] as bigint,
    fee: row['fee'] as bigint,
  }));
  return { top, accounts: Number(all?.['accounts'] ?? 0n) };
}

/** The attempts at offers, by id of the offer, on the days of a range. */
export async function findAttempts(
  query: Query,
  range: ConsoleRange,
  now: number,
): Promise<ReadonlyMap<string, { readonly successes: number; readonly failures: number }>> {
  const { fromMs } = boundsOf(range, now);
  const rows = await query(SQL.attemptsInDays, [Math.floor(fromMs / DAY_MS), Math.floor(now / DAY_MS)]);
  return new Map(
    rows.map((row) => [
      row['offer'] as string,
      { successes: Number(row['successes']), failures: Number(row['failures']) },
    ]),
  );
}

/** The times at which prices were used first, in epoch milliseconds, by the ids of the prices. */
export async function findPriceTimes(query: Query, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await query(SQL.priceTimes, [listParam(ids)]);
  return new Map(rows.map((row) => [row['id'] as string, Number(row['created_at'])]));
}

/** When the newest counted call was resolved, in epoch milliseconds; 0 before the first. */
export const findAsOf = async (query: Query): Promise<number> => (await findState(query)).asOf;

/** Whose the money in the ledger is, in micro-USD. */
export interface RestingMoney {
  /** Accounts can spend so much. */
  readonly deposits: MicroUsd;
  /** Locked by calls of accounts. */
  readonly locked: MicroUsd;
  /** Earnings of providers that are not the operator's own. */
  readonly owed: MicroUsd;
  /** Fees, and the earnings of the operator's own providers. */
  readonly operator: MicroUsd;
  /** Deposits from wallets that nobody has. */
  readonly suspense: MicroUsd;
  /** Credit that the operator granted, less what it took back, paid out or put on chains: the ledger's other side. */
  readonly grants: MicroUsd;
}

export async function findRestingMoney(query: Query, ownProviders: readonly string[]): Promise<RestingMoney> {
  const rows = await query(SQL.restingMoney, [listParam(ownProviders.map(earningsOf))]);
  const sums = new Map(rows.map((row) => [row['kind'] as string, row]));
  const figure = (kind: string, column: 'available' | 'locked' = 'available') =>
    (sums.get(kind)?.[column] ?? 0n) as bigint;
  return {
    deposits: figure('escrow'),
    locked: figure('escrow', 'locked'),
    owed: figure('earnings'),
    operator: figure('own') + figure(FEES),
    suspense: figure(SUSPENSE),
    grants: -figure('operator'),
  };
}

const sumsOf = (row: Row): ConsoleSums => ({
  requests: Number(row['requests']),
  failed: Number(row['failed']),
  charged: row['charged'] as bigint,
  fee: row['fee'] as bigint,
  cost: row['cost'] as bigint,
  costBase: row['cost_base'] as bigint,
  uncosted: Number(row['uncosted']),
  tokens: Number(row['tokens']),
});

export const NO_CALLS: ConsoleSums = {
  requests: 0,
  failed: 0,
  charged: 0n,
  fee: 0n,
  cost: 0n,
  costBase: 0n,
  uncosted: 0,
  tokens: 0,
};

export const plus = (one: ConsoleSums, other: ConsoleSums): ConsoleSums => ({
  requests: one.requests + other.requests,
  failed: one.failed + other.failed,
  charged: one.charged + other.charged,
  fee: one.fee + other.fee,
  cost: one.cost + other.cost,
  costBase: one.costBase + other.costBase,
  uncosted: one.uncosted + other.uncosted,
  tokens: one.tokens + other.tokens,
});

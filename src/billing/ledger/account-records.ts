import { loadStatements, type Database, type Query, type Row } from '#store';
import { earningsOf, escrowOf, type AccountName, type LockRecord, type LockState } from './ledger.ts';
import type { MicroUsd } from '../prices/money.ts';
import { toLock } from './ledger-rows.ts';

/** All-time figures of one consumer. Credits minus usage is what is available and locked. */
export interface AccountTotals {
  /** Paid in, minus what was paid out again. */
  readonly credits: MicroUsd;
  /** Charged for calls. */
  readonly usage: MicroUsd;
  readonly movements: AccountMovements;
}

/** The sums of a consumer's movements besides calls, each of its own. Only `other` can be negative. */
interface AccountMovements {
  /** Added and taken by the operator. */
  readonly credited: MicroUsd;
  readonly debited: MicroUsd;
  /** Charges of calls that the operator gave back. */
  readonly refunded: MicroUsd;
  /** Over a chain. Withdrawals that were given back are not counted. */
  readonly deposited: MicroUsd;
  readonly withdrawn: MicroUsd;
  /** Left when the account was closed: paid to the owner outside of the gateway, or kept by the operator. */
  readonly paidOut: MicroUsd;
  readonly writtenOff: MicroUsd;
  /** Any other movement, such as play money of a development gateway. */
  readonly other: MicroUsd;
}

export interface TransferRecord {
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

const ACCOUNT_RECORDS_SQL = loadStatements(import.meta.url, '../sql/account-records.sql', [
  'accountTotals',
  'accountMovements',
  'countHeldLocks',
  'listMovements',
  'listLocks',
  'listLocksSlice',
  'listLocksOfProvider',
]);
const LEDGER_SQL = loadStatements(import.meta.url, '../sql/ledger.sql', ['findTransfer']);

/**
 * Totals of `account` (without the `escrow:` prefix); zeros if it never had an entry. Rejects with the database's
 * error.
 */
export async function accountTotals(database: Database, account: string): Promise<AccountTotals> {
  const own = [escrowOf(account)];
  const [[row], sums] = await Promise.all([
    database.query(ACCOUNT_RECORDS_SQL.accountTotals, own),
    database.query(ACCOUNT_RECORDS_SQL.accountMovements, own),
  ]);
  const figure = (name: string) => (row?.[name] ?? 0n) as bigint;
  const credits = figure('paid_in') - figure('paid_out');
  return { credits, usage: credits - figure('remaining'), movements: movementsOf(sums) };
}

function movementsOf(rows: readonly Row[]): AccountMovements {
  const sums = new Map(rows.map((row) => [row['kind'], row['amount'] as bigint]));
  const sum = (kind: string) => sums.get(kind) ?? 0n;
  return {
    credited: sum('credited'),
    debited: sum('debited'),
    refunded: sum('refunded'),
    deposited: sum('deposited'),
    withdrawn: sum('withdrawn') - sum('returned'),
    paidOut: sum('paid_out'),
    writtenOff: sum('written_off'),
    other: sum('other_in') - sum('other_out'),
  };
}

/** All-time figures of one provider. */
interface EarningsTotals {
  readonly available: MicroUsd;
  /** Paid to the provider for calls, after the operator's fee. Withdrawals do not reduce it. */
  readonly earned: MicroUsd;
}

/**
 * Totals of `provider` (without the `earnings:` prefix); zeros if it never earned. Rejects with the database's error.
 */
export async function earningsTotals(query: Query, provider: string): Promise<EarningsTotals> {
  const [row] = await query(ACCOUNT_RECORDS_SQL.accountTotals, [earningsOf(provider)]);
  const figure = (name: string) => (row?.[name] ?? 0n) as bigint;
  return { available: figure('remaining'), earned: figure('remaining') + figure('paid_out') - figure('paid_in') };
}

/** The transfer with this id; null if there is no such transfer. */
export async function findTransfer(database: Database, id: string): Promise<TransferRecord | null> {
  const [row] = await database.query(LEDGER_SQL.findTransfer, [id]);
  return row ? recordOf(row) : null;
}

/**
 * Transfers to and from `account` (without the `escrow:` prefix), the newest first, at most `limit`. `before`: only
 * those before this transfer.
 */
export async function listMovements(
  database: Pick<Database, 'query'>,
  account: string,
  before: Pick<TransferRecord, 'id' | 'at'> | null,
  limit: number,
): Promise<readonly TransferRecord[]> {
  const { at, id } = before ?? { at: Number.MAX_SAFE_INTEGER, id: '' };
  return (await database.query(ACCOUNT_RECORDS_SQL.listMovements, [escrowOf(account), at, id, limit])).map(recordOf);
}

const recordOf = (row: Row): TransferRecord => ({
  id: row['id'] as string,
  from: row['from_account'] as string,
  to: row['to_account'] as string,
  amount: row['amount'] as bigint,
  memo: row['memo'] as string,
  at: Number(row['at']),
});

export async function countHeldLocks(database: Database): Promise<number> {
  const [row] = await database.query(ACCOUNT_RECORDS_SQL.countHeldLocks);
  return Number(row?.['held'] ?? 0n);
}

/** A position in the list of an account's locks, which is ordered by creation time (epoch milliseconds) and id. */
interface LockPlace {
  readonly at: number;
  readonly id: string;
}

export interface LocksQuery {
  readonly account: string;
  /** Only locks after this position in the list, which begins with the newest lock. */
  readonly before: LockPlace;
  /** Only locks made at or after this time, in epoch milliseconds. */
  readonly from: number;
  readonly limit: number;
  readonly state?: LockState;
  /**
   * Only locks whose `lockDetail` begins with `begins` and contains `holds`. Both are texts as JSON writes them. The
   * match may ignore the case of letters, so the caller must check again.
   */
  readonly begins?: string;
  readonly holds?: string;
  /** Only locks whose `lockDetail` or `detail` contains this text, by the same rules. */
  readonly eitherHolds?: string;
  /** Only locks of calls that failed, or that did not. The caller must check again, by `hasFailed`. */
  readonly failed?: boolean;
}

export interface FoundLocks {
  /** The newest first. */
  readonly records: readonly LockRecord[];
  /** The position at which the list continues; null at its end. An empty page can still have a next position. */
  readonly next: LockPlace | null;
}

/** Locks that one statement looks at. The bound keeps a search with few matches from blocking the embedded engine. */
const SLICE_LOCKS = 2_000;

/** Finds matching locks among the next `sliceLocks` locks of an account. Rejects with the database's error. */
export async function findLocks(
  database: Pick<Database, 'query'>,
  filter: LocksQuery,
  sliceLocks: number = SLICE_LOCKS,
): Promise<FoundLocks> {
  const { account, before, from, limit, state = '', begins, holds, eitherHolds, failed } = filter;
  const isAll = [begins, holds, eitherHolds, failed].every((each) => each === undefined) && state === '';
  // A list of all locks ends by itself at its limit: 25 of a million took 150 ms with the slice, and 1 ms without.
  const [end] = isAll
    ? []
    : await database.query(ACCOUNT_RECORDS_SQL.listLocksSlice, [account, before.at, before.id, from, sliceLocks - 1]);
  const last: LockPlace | null = end ? { at: Number(end['created_at']), id: end['id'] as string } : null;
  const like = (text: string | undefined, open = '%') =>
    text === undefined ? '%' : `${open}${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const rows = await database.query(ACCOUNT_RECORDS_SQL.listLocks, [
    account,
    before.at,
    before.id,
    last?.at ?? from,
    last?.id ?? '',
    state,
    like(begins, ''),
    like(holds),
    like(eitherHolds),
    limit,
    failed === undefined ? -1 : Number(failed),
  ]);
  const records = rows.map(toLock);
  const oldest = records.at(-1);
  if (oldest && records.length === limit) return { records, next: { at: oldest.createdAt, id: oldest.id } };
  return { records, next: last };
}

/** The resolved locks of a provider after a position in the list, which begins with the call that ended last. */
export async function listLocksOfProvider(
  database: Pick<Database, 'query'>,
  provider: string,
  before: LockPlace,
  limit: number,
): Promise<readonly LockRecord[]> {
  return (await database.query(ACCOUNT_RECORDS_SQL.listLocksOfProvider, [provider, before.at, before.id, limit])).map(
    toLock,
  );
}

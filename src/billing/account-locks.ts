import { loadStatement, type Database } from '#store';
import type { LockRecord, LockState } from './ledger.ts';
import { toLock } from './ledger-rows.ts';

/** A position in the list of an account's locks, which is ordered by creation time (epoch milliseconds) and id. */
export interface LockPlace {
  readonly at: number;
  readonly id: string;
}

/** Selects locks of an account. */
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
}

export interface FoundLocks {
  /** The newest first. */
  readonly records: readonly LockRecord[];
  /** The position at which the list continues; null at its end. An empty page can still have a next position. */
  readonly next: LockPlace | null;
}

const LIST = loadStatement(import.meta.url, './sql/list-locks.sql');
const SLICE = loadStatement(import.meta.url, './sql/list-locks-slice.sql');

/** Locks that one statement looks at. The bound keeps a search with few matches from blocking the embedded engine. */
const SLICE_LOCKS = 2_000;

/** Finds matching locks among the next `sliceLocks` locks of an account. Rejects with the database's error. */
export async function findLocks(
  database: Pick<Database, 'query'>,
  asked: LocksQuery,
  sliceLocks: number = SLICE_LOCKS,
): Promise<FoundLocks> {
  const { account, before, from, limit, state = '', begins, holds, eitherHolds } = asked;
  const [end] = await database.query(SLICE, [account, before.at, before.id, from, sliceLocks - 1]);
  const last: LockPlace | null = end ? { at: Number(end['created_at']), id: end['id'] as string } : null;
  const like = (text: string | undefined, open = '%') =>
    text === undefined ? '%' : `${open}${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
  const rows = await database.query(LIST, [
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
  ]);
  const records = rows.map(toLock);
  const oldest = records.at(-1);
  if (oldest && records.length === limit) return { records, next: { at: oldest.createdAt, id: oldest.id } };
  return { records, next: last };
}

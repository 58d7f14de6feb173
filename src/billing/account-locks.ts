import { loadStatement, type Database } from '#store';
import type { LockRecord, LockState } from './ledger.ts';
import { toLock } from './ledger-rows.ts';

/** A place in the list of an account's locks, by when they were made (epoch milliseconds) and by id. */
export interface LockPlace {
  readonly at: number;
  readonly id: string;
}

/** Which locks of an account are asked for. */
export interface LocksAsked {
  readonly account: string;
  /** Those that come after this place in the list, which begins with the newest. */
  readonly before: LockPlace;
  /** Epoch milliseconds of the oldest. */
  readonly from: number;
  readonly limit: number;
  readonly state?: LockState;
  /**
   * Texts that `lockDetail` holds, as JSON writes them; the first at its beginning. Letters of either case may
   * match: the caller looks again.
   */
  readonly begins?: string;
  readonly holds?: string;
  /** The same for `lockDetail` or `detail`. */
  readonly eitherHolds?: string;
}

export interface FoundLocks {
  /** The newest first. */
  readonly records: readonly LockRecord[];
  /** The place at which the list goes on; null at its end. A page may be empty and still have a next place. */
  readonly next: LockPlace | null;
}

const LIST = loadStatement(import.meta.url, './sql/list-locks.sql');
const SLICE = loadStatement(import.meta.url, './sql/list-locks-slice.sql');

/** Locks that one statement looks at: what few locks match must not have the embedded engine do nothing else. */
const SLICE_LOCKS = 2_000;

/** Some locks of an account, out of the next 2,000. Rejects with the database's error. */
export async function findLocks(
  database: Pick<Database, 'query'>,
  asked: LocksAsked,
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

import { loadStatements, type Query } from '#store';
import { partsOf } from '../ledger/call-ids.ts';

export interface ArchivedCallPlace {
  readonly archive: string;
  /** Epoch milliseconds: the archive has the calls before it. */
  readonly endsAt: number;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['findArchivedCall']);

/**
 * The archive that has a call of `account` (null: of any account). null if none has. Ids of one process are known as a
 * range for each account: an id in it that no call had gets the same answer.
 */
export async function findArchivedCall(
  query: Query,
  id: string,
  account: string | null,
): Promise<ArchivedCallPlace | null> {
  const { prefix, rest } = partsOf(id);
  const [row] = await query(SQL.findArchivedCall, [account ?? '', id, prefix, rest]);
  return row === undefined ? null : { archive: row['name'] as string, endsAt: Number(row['ends_at']) };
}

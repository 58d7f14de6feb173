import { loadStatements, type LogHead, type Prepare } from '#store';
import { EMBEDDED_CHAIN } from '../ledger/ledger-sqlite.ts';

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['archivedChain']);

/**
 * The end of the newest archive in the embedded ledger, in the thread of its database: the last archived group, and
 * where it ends in the log (0 if it is older than the log). null without an archive. Groups up to it may be gone.
 */
export function readArchivedPlace(prepare: Prepare): LogHead | null {
  const row = prepare(SQL.archivedChain).get(EMBEDDED_CHAIN) as
    | { n: bigint; hash: string; position: bigint }
    | undefined;
  return row === undefined ? null : { n: Number(row.n), hash: row.hash, position: Number(row.position) };
}

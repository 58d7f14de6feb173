import { findRecord, loadStatements, type Prepare } from '#store';

const SQL = loadStatements(import.meta.url, '../sql/journal.sql', ['logPosition']);

/** The hash of the log record whose number is `args`; null if the log has no such record. */
export function run(prepare: Prepare, args: unknown, folder: string): string | null {
  const { position } = prepare(SQL.logPosition).get() as { position: bigint };
  return findRecord(folder, args as number, Number(position))?.hash ?? null;
}

import { findRecord, loadStatement, type Prepare } from '#store';

const POSITION = loadStatement(import.meta.url, './sql/log-position.sql');

/** The hash of the log record whose number is `args`; null if the log has no such record. */
export function run(prepare: Prepare, args: unknown, folder: string): string | null {
  const { position } = prepare(POSITION).get() as { position: bigint };
  return findRecord(folder, args as number, Number(position))?.hash ?? null;
}

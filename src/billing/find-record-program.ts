import { findRecord, loadStatement, type Prepare } from '#store';

const POSITION = loadStatement(import.meta.url, './sql/log-position.sql');

/** The hash of record `args` of the log; null where it has none of that number. */
export function run(prepare: Prepare, args: unknown, folder: string): string | null {
  const { position } = prepare(POSITION).get() as { position: bigint };
  return findRecord(folder, args as number, Number(position))?.hash ?? null;
}

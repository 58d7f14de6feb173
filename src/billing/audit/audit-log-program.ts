import { isIntact, loadStatements, type LogHead, type Prepare, readRecords, GENESIS } from '#store';
import { readArchivedPlace } from '../archive/archived-place.ts';
import { EMBEDDED_CHAIN } from '../ledger/ledger-sqlite.ts';
import { movementsOf } from '../ledger/log-movements.ts';

/** The audit's result for the log: its faults and its size. */
export interface AuditedLog {
  readonly problems: readonly string[];
  readonly records: number;
  readonly operations: number;
}

const JOURNAL_SQL = loadStatements(import.meta.url, '../sql/journal.sql', ['logPosition', 'chainHead']);
const AUDIT_SQL = loadStatements(import.meta.url, '../sql/audit.sql', ['auditInsertMovement']);
const PROBLEMS_MAX = 20;

/**
 * Reads the log from the end of the newest archive up to the position that the tables have reached, recomputes its
 * hashes, and inserts its movements into the audit's table.
 */
export function run(prepare: Prepare, _args: unknown, folder: string): AuditedLog {
  const problems: string[] = [];
  const say = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  const row = prepare(JOURNAL_SQL.logPosition).get() as { position: bigint; n: bigint; hash: string };
  const before = prepare(JOURNAL_SQL.chainHead).get(EMBEDDED_CHAIN) as { n: bigint; hash: string } | undefined;
  const archived = readArchivedPlace(prepare);
  let head: LogHead =
    archived !== null && archived.n >= Number(before?.n ?? 0n)
      ? archived
      : { position: 0, n: Number(before?.n ?? 0n), hash: before?.hash ?? GENESIS };
  const insert = prepare(AUDIT_SQL.auditInsertMovement);
  let records = 0;
  let operations = 0;
  try {
    for (const record of readRecords(folder, head, Number(row.position), true)) {
      if (record.n !== head.n + 1) say(`log, record ${record.n}: record ${head.n + 1} is missing before it`);
      else if (record.prev !== head.hash)
        say(`log, record ${record.n}: it does not follow the hash of the one before it`);
      else if (!isIntact(record)) say(`log, record ${record.n}: its rows do not have the hash that was recorded`);
      head = record;
      records += 1;
      const movements = movementsOf(record.payload);
      if (movements === null) say(`log, record ${record.n}: its rows cannot be read`);
      else {
        movements.forEach(({ movement, at }, index) =>
          insert.run(EMBEDDED_CHAIN, record.n, index, ...movement, at ?? record.at),
        );
        operations += movements.length;
      }
    }
    if (head.hash !== row.hash && problems.length === 0)
      say(`the tables follow a different log: record ${row.n} has another hash there`);
  } catch (error) {
    say((error as Error).message);
  }
  return { problems, records, operations };
}

import { isIntact, loadStatements, type LogHead, type Prepare, readRecords, GENESIS } from '#store';
import { escrowOf, earningsOf } from './ledger.ts';
import type { JournalKind } from './ledger-changes.ts';
import { entriesOf, type Entry } from './ledger-log-rows.ts';
import { EMBEDDED_CHAIN } from './ledger-sqlite.ts';

/** The audit's result for the log: its faults and its size. */
export interface AuditedLog {
  readonly problems: readonly string[];
  readonly records: number;
  readonly operations: number;
}

const JOURNAL_SQL = loadStatements(import.meta.url, './sql/journal.sql', ['logPosition', 'chainHead']);
const AUDIT_SQL = loadStatements(import.meta.url, './sql/audit.sql', ['auditInsertMovement']);
const PROBLEMS_MAX = 20;

/**
 * Reads the log up to the position that the tables have reached, recomputes its hashes, and inserts its movements into
 * the audit's table.
 */
export function run(prepare: Prepare, _args: unknown, folder: string): AuditedLog {
  const problems: string[] = [];
  const say = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem);
  };
  const row = prepare(JOURNAL_SQL.logPosition).get() as { position: bigint; n: bigint; hash: string };
  const before = prepare(JOURNAL_SQL.chainHead).get(EMBEDDED_CHAIN) as { n: bigint; hash: string } | undefined;
  let head: LogHead = { position: 0, n: Number(before?.n ?? 0n), hash: before?.hash ?? GENESIS };
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

/** kind, id, account, counterparty, amount, charged, fee, drawn, price */
type Movement = readonly [
  kind: JournalKind,
  id: string,
  account: string,
  counterparty: string | null,
  amount: string,
  charged: string,
  fee: string,
  drawn: string,
  price: string | null,
];

interface TimedMovement {
  readonly movement: Movement;
  /** Epoch milliseconds, if it was decided before the time of its record. */
  readonly at: number | undefined;
}

function movementsOf(payload: string): readonly TimedMovement[] | null {
  try {
    return entriesOf(payload).flatMap((entry) => {
      const at = entry[0] === 'lock' ? entry[9] : undefined;
      return movementsOfEntry(entry).map((movement) => ({ movement, at }));
    });
  } catch {
    return null;
  }
}

function movementsOfEntry(entry: Entry): readonly Movement[] {
  switch (entry[0]) {
    case 'lock': {
      const [kind, id, account, amount, , , , , run] = entry;
      const lock = plain(kind, id, escrowOf(account), null, amount);
      const parent = run?.[0] ?? null;
      return parent === null ? [lock] : [plain('lend', id, escrowOf(account), parent, amount), lock];
    }
    case 'settle': {
      const [kind, id, account, held, price, provider, charged, fee, , drawn] = entry;
      return [[kind, id, escrowOf(account), earningsOf(provider), held, charged, fee, drawn, price]];
    }
    case 'release':
    case 'expire':
      return [plain(entry[0], entry[1], escrowOf(entry[2]), null, entry[3])];
    case 'return':
      return [plain(entry[0], entry[1], entry[2], entry[4], entry[3])];
    case 'transfer':
      return [plain(entry[0], entry[1], entry[2], entry[3], entry[4])];
    default:
      return [];
  }
}

const plain = (
  kind: JournalKind,
  id: string,
  account: string,
  counterparty: string | null,
  amount: string,
): Movement => [kind, id, account, counterparty, amount, '0', '0', '0', null];

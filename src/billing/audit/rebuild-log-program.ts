import { GENESIS, loadStatements, type Prepare } from '#store';
import type { JournalRow } from '../ledger/ledger-changes.ts';
import { readArchivedPlace } from '../archive/archived-place.ts';
import { hashBatch } from '../ledger/journal.ts';
import { EMBEDDED_CHAIN } from '../ledger/ledger-sqlite.ts';

const REBUILD_LOG_SQL = loadStatements(import.meta.url, '../sql/rebuild-log.sql', [
  'rebuildToldTable',
  'rebuildToldIndex',
  'rebuildMovements',
  'rebuildReturns',
  'rebuildPosition',
  'rebuildArchivedPosition',
  'rebuildForgetSums',
]);
const AUDIT_SQL = loadStatements(import.meta.url, '../sql/audit.sql', ['auditLiveLocks']);
const JOURNAL_SQL = loadStatements(import.meta.url, '../sql/journal.sql', [
  'chainHead',
  'insertJournal',
  'insertBatch',
]);

const BATCH_ROWS = 1_000;

type MovementRow = Omit<JournalRow, 'at'> & { readonly at: bigint };

/**
 * A lock under a parent that ended with a rest. `handed_back` is 1 if the parent got the rest, -1 if the parent had
 * ended before, and 0 if both ended in the same millisecond.
 */
interface Returned {
  readonly id: string;
  readonly account: string;
  readonly parent: string;
  readonly rest: bigint;
  readonly at: bigint;
  readonly lent: bigint;
  readonly drawn_from: bigint;
  readonly handed_back: bigint;
  readonly is_told: bigint;
}

/**
 * For tables whose log is lost: derives the movements from the tables and writes them into the journal, as if there had
 * never been a log. The next log record follows the journal's last batch. Contradictions between the tables are left
 * for the audit to report.
 */
export function run(prepare: Prepare): null {
  prepare(AUDIT_SQL.auditLiveLocks).run();
  prepare(REBUILD_LOG_SQL.rebuildToldTable).run();
  prepare(REBUILD_LOG_SQL.rebuildToldIndex).run();
  const last = prepare(JOURNAL_SQL.chainHead).get(EMBEDDED_CHAIN) as { n: bigint; hash: string } | undefined;
  const archived = readArchivedPlace(prepare);
  const before = archived !== null && archived.n > Number(last?.n ?? 0n) ? archived : last;
  let n = Number(before?.n ?? 0n);
  let hash = before?.hash ?? GENESIS;
  let rows: JournalRow[] = [];
  const flush = () => {
    if (rows.length === 0) return;
    n += 1;
    const prev = hash;
    const { at } = rows.at(-1)!;
    hash = hashBatch(prev, EMBEDDED_CHAIN, n, at, rows);
    for (const [position, row] of rows.entries()) {
      const { kind, id, account, counterparty, amount, charged, fee, drawn, price } = row;
      const values = [kind, id, account, counterparty, amount, charged, fee, drawn, price, row.at] as const;
      prepare(JOURNAL_SQL.insertJournal).run(EMBEDDED_CHAIN, n, position, ...values);
    }
    prepare(JOURNAL_SQL.insertBatch).run(EMBEDDED_CHAIN, n, at, rows.length, prev, hash);
    rows = [];
  };
  const tell = (row: JournalRow) => {
    if (rows.push(row) === BATCH_ROWS) flush();
  };
  for (const row of prepare(REBUILD_LOG_SQL.rebuildMovements).iterate() as IterableIterator<MovementRow>)
    tell({ ...row, at: Number(row.at) });
  for (const { id, account, parent, rest, at } of returnsOf(prepare))
    tell({
      kind: 'return',
      id,
      account,
      counterparty: parent,
      amount: rest,
      charged: 0n,
      fee: 0n,
      drawn: 0n,
      price: null,
      at: Number(at),
    });
  flush();
  prepare(REBUILD_LOG_SQL.rebuildPosition).run(n, hash);
  prepare(REBUILD_LOG_SQL.rebuildArchivedPosition).run(EMBEDDED_CHAIN);
  prepare(REBUILD_LOG_SQL.rebuildForgetSums).run();
  return null;
}

/** The locks that gave a rest back to their parent without a journal row for it. */
function* returnsOf(prepare: Prepare): Generator<Returned> {
  let parent = '';
  /** The money that the current parent got back and that no row has explained yet. */
  let remaining = 0n;
  for (const row of prepare(REBUILD_LOG_SQL.rebuildReturns).iterate() as IterableIterator<Returned>) {
    if (row.parent !== parent) {
      ({ parent } = row);
      remaining = row.drawn_from - row.lent;
    }
    const isGiven = row.is_told === 1n || row.handed_back === 1n || (row.handed_back === 0n && row.rest <= remaining);
    if (!isGiven) continue;
    remaining -= row.rest;
    if (row.is_told === 0n) yield row;
  }
}

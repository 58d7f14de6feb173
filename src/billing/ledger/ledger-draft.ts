import type { AccountRow, BudgetRow, JournalRow, LockRow, BatchRows } from './ledger-changes.ts';
import type { RecordRows } from './ledger-log-rows.ts';
import type { RowsInMemory } from './ledger-memory.ts';
import type { LedgerOperation, OperationResult } from './ledger-operations.ts';
import type { TransferRequest } from './ledger.ts';

/** An operation that waits for its decision, or for the disk. */
export interface Submitted {
  readonly operation: LedgerOperation;
  /** Epoch milliseconds, by the clock of its ledger. */
  readonly now: () => number;
  /** Milliseconds on the monotonic clock, after which the caller is told that the ledger is unavailable. */
  readonly deadline: number;
  readonly resolve: (result: OperationResult) => void;
  readonly reject: (error: Error) => void;
  /**
   * Rows that were read for it, together with those for others. They are right in the turn of the event loop in which
   * they were read: what is decided in it is still in the unwritten records.
   */
  rows: RowsInMemory | null;
  /** The answer, which is given when its record is on the disk; null before the decision. */
  result: OperationResult | null;
}

/** The operations that were decided since the last record was begun: they become the next record of the log. */
export class Draft implements RecordRows {
  /** Milliseconds on the monotonic clock at which the first end in it was answered; null if none was. */
  lateSince: number | null = null;
  /** Epoch milliseconds of the last decision. */
  at = 0;
  operations = 0;
  journal: JournalRow[] = [];
  newLocks: LockRow[] = [];
  resolvedLocks: LockRow[] = [];
  readonly changedLocks: LockRow[] = [];
  readonly transfers: TransferRequest[] = [];
  /** The rows as they are after the last decision. */
  readonly accounts = new Map<string, AccountRow>();
  readonly budgets = new Map<string, BudgetRow>();
  /** They are answered when the record is on the disk. */
  readonly waiters: Submitted[] = [];
  /** Readers of the tables, who must see what was decided before. */
  readonly readers: (() => void)[] = [];

  get isEmpty(): boolean {
    return this.operations === 0;
  }

  /** Returns false if the decision changes nothing. */
  add(at: number, written: BatchRows): boolean {
    const { journal, newLocks, resolvedLocks, changedLocks, transfers, accounts, budgets } = written;
    if (journal.length === 0 && changedLocks.length === 0) return false;
    this.at = at;
    this.operations += 1;
    this.journal = joined(this.journal, journal);
    this.newLocks = joined(this.newLocks, newLocks);
    this.resolvedLocks = joined(this.resolvedLocks, resolvedLocks);
    for (const { row } of changedLocks) this.changedLocks.push(row);
    this.transfers.push(...transfers);
    for (const row of accounts) this.accounts.set(row.id, row);
    for (const row of budgets) this.budgets.set(row.id, row);
    return true;
  }
}

/** `list` with `more` behind it. Most records have few rows, and V8 gives an empty list room for 17 first. */
function joined<T>(list: T[], more: readonly T[]): T[] {
  if (list.length === 0) return [...more];
  list.push(...more);
  return list;
}

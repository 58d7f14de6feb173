import { RecentMap } from '#maps';
import { loadStatements, type Query } from '#store';
import type { AccountRow, BudgetRow, LedgerState, LockRow, BatchRows } from './ledger-changes.ts';
import type { RecordRows } from './ledger-log-rows.ts';
import { findArchivedLock, readAccount, readBudget, toOpenLock } from './ledger-rows.ts';

/** Marks a row that does not exist in the tables. */
export const ABSENT = null;

const ACCOUNTS = 20_000;
const BUDGETS = 20_000;
const LOCKS = 50_000;

/**
 * The ledger's current rows, as of the end of the log: recently used accounts and budgets, and held locks. All other
 * rows are in the tables, which follow the log.
 */
export class LedgerMemory {
  readonly accounts = new RecentMap<AccountRow | typeof ABSENT>(ACCOUNTS);
  readonly budgets = new RecentMap<BudgetRow | typeof ABSENT>(BUDGETS);
  readonly locks = new RecentMap<LockRow>(LOCKS);
  readonly freeIds = new FreeIds();

  /** Applies a group's changes. Call it after the group is on disk. */
  take({ accounts, budgets, newLocks, resolvedLocks, changedLocks }: BatchRows): void {
    // Nobody changes the rows of a decision, so they are not copied.
    for (const row of accounts) this.accounts.set(row.id, row);
    for (const row of budgets) this.budgets.set(row.id, row);
    for (const row of newLocks) {
      this.freeIds.take(row.id);
      this.locks.set(row.id, row);
    }
    for (const { row } of changedLocks) this.locks.set(row.id, row);
    for (const row of resolvedLocks) {
      // Locks under this one need it when they end.
      if (row.lendable > 0n) this.locks.set(row.id, row);
      else this.locks.delete(row.id);
    }
  }
}

/** A range of ids without a lock. Both ends are exclusive; null means no limit. */
interface Gap {
  readonly after: string | null;
  readonly before: string | null;
}

const GAPS_MAX = 8;
// SQLite orders texts by UTF-8 bytes, JavaScript by UTF-16 units. Both orders agree for ASCII only.
const ASCII = /^[\0-\x7f]*$/;

/**
 * Ranges of ids that no lock has, so that a new lock needs no query. The ids of a gateway are a prefix of its process
 * and a counter, so after one query all of them are in one gap.
 */
export class FreeIds {
  #gaps: Gap[] = [];

  /** True if no lock has this id. False means unknown. */
  isFree(id: string): boolean {
    return ASCII.test(id) && this.#gaps.some((gap) => isIn(gap, id));
  }

  learn(gap: Gap): void {
    if (!ASCII.test(gap.after ?? '') || !ASCII.test(gap.before ?? '')) return;
    this.#gaps = [gap, ...this.#gaps].slice(0, GAPS_MAX);
  }

  /** Notes that a lock has this id now. If the id splits a gap, only the upper part stays. */
  take(id: string): void {
    for (let index = 0; index < this.#gaps.length; index += 1) {
      const gap = this.#gaps[index]!;
      // For an id that is not ASCII the two orders may differ, so every gap is given up.
      if (!ASCII.test(id)) this.#gaps[index] = { after: '', before: '' };
      else if (isIn(gap, id)) this.#gaps[index] = { after: id, before: gap.before };
    }
  }
}

const isIn = ({ after, before }: Gap, id: string): boolean =>
  (after === null || id > after) && (before === null || id < before);

const SQL = loadStatements(import.meta.url, '../sql/ledger.sql', ['findLockToResolve', 'findLockGap', 'findTransfer']);
const ARCHIVE_SQL = loadStatements(import.meta.url, '../sql/archive.sql', ['findArchivedGap']);

/**
 * The rows on which an operation is decided: rows in memory, and rows that were read for it. If the decision asks for
 * any other row, the row is noted as missing and the decision is discarded. It is made again after `read` has read the
 * missing rows.
 */
export class RowsInMemory implements LedgerState {
  readonly #memory: LedgerMemory;
  readonly #unwritten: () => readonly Unwritten[];
  /** Rows that were read for the operation. */
  #locks: Map<string, LockRow | typeof ABSENT> | null = null;
  #transfers: Map<string, boolean> | null = null;
  #missing: Missing | null = null;

  /** `unwritten`: records that are not on the disk yet, the newest first. */
  constructor(memory: LedgerMemory, unwritten: () => readonly Unwritten[]) {
    this.#memory = memory;
    this.#unwritten = unwritten;
  }

  account(id: string): AccountRow | undefined {
    const row = this.#memory.accounts.get(id);
    if (row === undefined) this.#lacks().accounts.add(id);
    return row ?? undefined;
  }

  budget(id: string): BudgetRow | undefined {
    const row = this.#memory.budgets.get(id);
    if (row === undefined) this.#lacks().budgets.add(id);
    return row ?? undefined;
  }

  /** Gives a copy, because the row in memory is a part of a record that is not on the disk yet. */
  lock(id: string): LockRow | undefined {
    const row = this.#memory.locks.get(id) ?? this.#readLock(id);
    if (row) return { ...row };
    if (row === undefined && !this.#memory.freeIds.isFree(id)) this.#lacks().locks.add(id);
    return undefined;
  }

  /** A lock that was read. An operation that was decided after the reading may have changed it. */
  #readLock(id: string): LockRow | typeof ABSENT | undefined {
    const read = this.#locks?.get(id);
    return read === undefined ? undefined : (this.#lastOf((record) => lockIn(record, id)) ?? read);
  }

  /** The newest of the unwritten rows. */
  #lastOf<T>(find: (record: Unwritten) => T | undefined): T | undefined {
    for (const record of this.#unwritten()) {
      const row = find(record);
      if (row !== undefined) return row;
    }
    return undefined;
  }

  hasTransfer(id: string): boolean {
    if (this.#unwritten().some(({ transfers }) => transfers.some((transfer) => transfer.id === id))) return true;
    const isKnown = this.#transfers?.get(id);
    if (isKnown === undefined) this.#lacks().transfers.add(id);
    return isKnown ?? false;
  }

  /** True if the decision asked for rows that were not read yet. */
  get isMissingRows(): boolean {
    return this.#missing !== null;
  }

  #lacks(): Missing {
    return (this.#missing ??= { accounts: new Set(), budgets: new Set(), locks: new Set(), transfers: new Set() });
  }

  /** Reads the missing rows. */
  async read(query: Query): Promise<void> {
    const { accounts, budgets, locks, transfers } = this.#lacks();
    this.#missing = null;
    const memory = this.#memory;
    const foundLocks = (this.#locks ??= new Map());
    const foundTransfers = (this.#transfers ??= new Map());
    const readLock = async (id: string) => {
      const [row] = await query(SQL.findLockToResolve, [id]);
      return row ? toOpenLock(row) : findArchivedLock(query, id);
    };
    // All queries are made in one turn, so they are sent to the database thread in one message.
    await Promise.all([
      ...[...accounts].map(async (id) =>
        memory.accounts.set(id, this.#lastOf((record) => record.accounts.get(id)) ?? (await readAccount(query, id))),
      ),
      ...[...budgets].map(async (id) =>
        memory.budgets.set(id, this.#lastOf((record) => record.budgets.get(id)) ?? (await readBudget(query, id))),
      ),
      ...[...locks].map(async (id) =>
        foundLocks.set(id, this.#lastOf((record) => lockIn(record, id)) ?? (await readLock(id))),
      ),
      ...[...transfers].map(async (id) => foundTransfers.set(id, (await query(SQL.findTransfer, [id])).length > 0)),
    ]);
    const [unused] = [...locks].filter((id) => foundLocks.get(id) === ABSENT).sort();
    if (unused === undefined) return;
    // The ids of the next locks are usually in the same gap. Those of records that reach the disk meanwhile are not.
    const unwritten = this.#unwritten();
    const gaps = await Promise.all([query(SQL.findLockGap, [unused]), query(ARCHIVE_SQL.findArchivedGap, [unused])]);
    memory.freeIds.learn(commonGap(gaps.flat() as unknown as readonly Gap[]));
    for (const { newLocks } of unwritten) for (const { id } of newLocks) memory.freeIds.take(id);
  }
}

/** The gap in which ids are free of each kind of use. */
function commonGap(gaps: readonly Gap[]): Gap {
  const ends = (side: 'after' | 'before') =>
    gaps
      .map((gap) => gap[side])
      .filter((id) => id !== null)
      .sort();
  return { after: ends('after').at(-1) ?? null, before: ends('before')[0] ?? null };
}

/** A record that is not on the disk yet, so the tables lack it. */
type Unwritten = Pick<RecordRows, 'accounts' | 'budgets' | 'newLocks' | 'resolvedLocks' | 'changedLocks' | 'transfers'>;

/** The lock as a record leaves it. */
const lockIn = ({ newLocks, resolvedLocks, changedLocks }: Unwritten, id: string): LockRow | undefined => {
  const isIt = (row: LockRow) => row.id === id;
  return resolvedLocks.findLast(isIt) ?? changedLocks.findLast(isIt) ?? newLocks.findLast(isIt);
};

interface Missing {
  readonly accounts: Set<string>;
  readonly budgets: Set<string>;
  readonly locks: Set<string>;
  readonly transfers: Set<string>;
}

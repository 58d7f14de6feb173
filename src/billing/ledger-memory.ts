import { type AccountRow, type BudgetRow, type LockRow, type Written, isPlain } from './ledger-changes.ts';
import type { Decision } from './ledger-decide.ts';
import type { Operation } from './ledger-operations.ts';

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
  readonly accounts = new Recently<AccountRow | typeof ABSENT>(ACCOUNTS);
  readonly budgets = new Recently<BudgetRow | typeof ABSENT>(BUDGETS);
  readonly locks = new Recently<LockRow>(LOCKS);
  readonly freeIds = new FreeIds();

  /** Applies a group's changes. Call it after the group is on disk. */
  take({ accounts, budgets, newLocks, resolvedLocks, changedLocks }: Written): void {
    for (const { id, available, locked } of accounts) this.accounts.set(id, { id, available, locked });
    for (const { id, spent, locked } of budgets) this.budgets.set(id, { id, spent, locked });
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

/**
 * Held locks that this gateway made, so that it can resolve them without reading them. Only locks whose columns cannot
 * change while they are held: a lock that lends or is kept must be read. The write itself checks that the lock is still
 * held.
 */
export class OwnLocks {
  readonly #rows = new Recently<LockRow>(LOCKS);

  get(id: string): LockRow | undefined {
    return this.#rows.get(id);
  }

  /** Applies a group's changes. Call it after the group is committed. */
  take({ newLocks, resolvedLocks, changedLocks }: Decision): void {
    for (const row of newLocks) if (row.resolvedAt === null && isPlain(row)) this.#rows.set(row.id, row);
    for (const row of resolvedLocks) this.#rows.delete(row.id);
    for (const { row } of changedLocks) this.#rows.delete(row.id);
  }

  /** For use after a failure: the next attempt reads the locks from the database. */
  forget(operations: readonly Operation[]): void {
    for (const { request } of operations) this.#rows.delete(request.id);
  }
}

/** A range of ids without a lock. Both ends are exclusive; null means no limit. */
export interface Gap {
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

/**
 * A map that keeps recently used entries: between `size` and twice `size` of them. It drops the older half at once, so
 * a look-up needs no bookkeeping.
 */
class Recently<T> {
  readonly #size: number;
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  constructor(size: number) {
    this.#size = size;
  }

  get(key: string): T | undefined {
    const found = this.#young.get(key);
    if (found !== undefined) return found;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: T): void {
    this.#young.set(key, value);
    if (this.#young.size < this.#size) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }
}

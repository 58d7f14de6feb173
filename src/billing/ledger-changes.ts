import { escrowOf, type AccountName, type LockRecord, type Settlement, type TransferRequest } from './ledger.ts';
import type { Operation } from './ledger-operations.ts';
import type { MicroUsd } from './money.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A lock as a batch works on it. For a lock of an earlier batch only the columns that decide are read, so the fields of
 * its resolution are blank until this batch fills them in.
 */
export type LockRow = Mutable<LockRecord>;

export interface AccountRow {
  readonly id: AccountName;
  available: MicroUsd;
  locked: MicroUsd;
}

export interface BudgetRow {
  readonly id: string;
  spent: MicroUsd;
  locked: MicroUsd;
}

/**
 * The rows that operations touch, as the database holds them now. Each is read at most once per batch, and may be
 * changed in place.
 */
export interface LedgerState {
  account(id: AccountName): AccountRow | undefined;
  lock(id: string): LockRow | undefined;
  budget(id: string): BudgetRow | undefined;
  hasTransfer(id: string): boolean;
}

/**
 * The kind of a row. A lock under another lock is two rows: `lend` makes that amount of the parent's locked money
 * available, and `lock` locks it again. A resolution whose rest goes back to the parent is also two rows: the
 * resolution frees all that the lock held, and `return` locks the rest again for the parent. So a balance is the sum of
 * its rows, without knowing which lock lent to which.
 */
export type JournalKind = Exclude<Operation['kind'], 'keep'> | 'lend' | 'return';

/**
 * One movement of an operation that had an effect. A refused operation has no row. Keeping a lock has no row either,
 * because it moves no money.
 */
export interface JournalRow {
  readonly kind: JournalKind;
  readonly id: string;
  readonly account: AccountName;
  /** The other account. For `lend` and `return` it is the id of the parent lock. */
  readonly counterparty: string | null;
  /** For a resolution: what the lock held. */
  readonly amount: MicroUsd;
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  readonly drawn: MicroUsd;
  readonly price: string | null;
  readonly at: number;
}

/** The new row, with the figures that the database held before (zeros and `isNew` if it had no row). */
export interface AccountChange extends AccountRow {
  readonly isNew: boolean;
  readonly availableBefore: MicroUsd;
  readonly lockedBefore: MicroUsd;
}

interface BudgetChange extends BudgetRow {
  readonly spentBefore: MicroUsd;
  readonly lockedBefore: MicroUsd;
}

/** A change of a lock of an earlier batch that is not its resolution: `lent`, `kept` or `expiresAt`. */
interface LockChange {
  readonly row: LockRow;
  readonly lentBefore: MicroUsd;
}

type OpenLock = Omit<
  LockRecord,
  keyof Settlement | 'feeBps' | 'price' | 'provider' | 'resolvedAt' | 'usage' | 'detail'
>;

/** A lock without a resolution. */
export function openLock(lock: OpenLock): LockRow {
  return {
    id: lock.id,
    account: lock.account,
    amount: lock.amount,
    parent: lock.parent,
    depth: lock.depth,
    lendable: lock.lendable,
    lent: lock.lent,
    kept: lock.kept,
    prices: lock.prices,
    budgets: lock.budgets,
    state: lock.state,
    price: null,
    provider: null,
    charged: 0n,
    fee: 0n,
    feeBps: null,
    drawn: 0n,
    shortfall: 0n,
    createdAt: lock.createdAt,
    expiresAt: lock.expiresAt,
    resolvedAt: null,
    lockDetail: lock.lockDetail,
    usage: null,
    detail: null,
  };
}

/** The ids of a lock's budgets as the column `budget` stores them: separated by spaces, NULL for none. */
export const budgetText = (budgets: readonly string[]): string | null =>
  budgets.length === 0 ? null : budgets.join(' ');

/**
 * True for a new lock that has no part in a run. It is written without the columns for runs, because their defaults
 * fit.
 */
export function isPlain(row: LockRow): boolean {
  return row.parent === null && row.lendable === 0n && !row.kept;
}

/** Rows that a batch writes. */
export interface Written {
  readonly journal: readonly JournalRow[];
  readonly accounts: readonly AccountChange[];
  readonly budgets: readonly BudgetChange[];
  readonly newLocks: readonly LockRow[];
  /** Locks that this batch resolves, made by earlier batches or by this one. */
  readonly resolvedLocks: readonly LockRow[];
  readonly changedLocks: readonly LockChange[];
  readonly transfers: readonly TransferRequest[];
}

/** The rows that a batch has read so far, with its changes, and the journal of these changes. */
export class LedgerChanges {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly #state: LedgerState;
  readonly #accounts = new Rows<AccountChange | null>();
  readonly #budgets = new Rows<BudgetChange>();
  readonly #locks = new Rows<LockRow | null>();
  readonly #newLocks: LockRow[] = [];
  readonly #resolvedLocks: LockRow[] = [];
  readonly #changedLocks = new Rows<LockChange>();
  readonly #transfers = new Rows<TransferRequest>();
  readonly #journal: JournalRow[] = [];

  constructor(state: LedgerState, now: number) {
    this.#state = state;
    this.now = now;
  }

  account(id: AccountName): AccountChange | null {
    let found = this.#accounts.get(id);
    if (found === undefined) {
      const row = this.#state.account(id);
      found = row ? changeOf(row, false) : null;
      this.#accounts.set(id, found);
    }
    return found;
  }

  /** The account; a missing one is created. */
  openAccount(id: AccountName): AccountChange {
    let found = this.account(id);
    if (!found) this.#accounts.set(id, (found = emptyAccount(id)));
    return found;
  }

  /**
   * The account, or zeros that are never written. For operations that may move no money: a free call must not create an
   * account, because the account would look funded afterwards.
   */
  accountOrNothing(id: AccountName): AccountChange {
    return this.account(id) ?? emptyAccount(id);
  }

  budget(id: string): BudgetChange {
    let found = this.#budgets.get(id);
    if (!found) {
      const row = this.#state.budget(id) ?? NOTHING_SPENT;
      found = { id, spent: row.spent, locked: row.locked, spentBefore: row.spent, lockedBefore: row.locked };
      this.#budgets.set(id, found);
    }
    return found;
  }

  lock(id: string): LockRow | undefined {
    let found = this.#locks.get(id);
    if (found === undefined) this.#locks.set(id, (found = this.#state.lock(id) ?? null));
    return found ?? undefined;
  }

  heldLock(id: string): LockRow | 'not_found' | 'already_resolved' {
    const row = this.lock(id);
    if (!row) return 'not_found';
    return row.state === 'held' ? row : 'already_resolved';
  }

  addLock(row: LockRow): void {
    this.#locks.set(row.id, row);
    this.#newLocks.push(row);
  }

  /** Must be called before the first change of a lock that is not its resolution. */
  changeLock(row: LockRow): void {
    if (this.#changedLocks.get(row.id) === undefined) this.#changedLocks.set(row.id, { row, lentBefore: row.lent });
  }

  resolveLock(row: LockRow, state: LockRow['state'], detail: string | null): void {
    row.state = state;
    row.resolvedAt = this.now;
    row.detail = detail;
    this.#resolvedLocks.push(row);
  }

  hasTransfer(id: string): boolean {
    return this.#transfers.get(id) !== undefined || this.#state.hasTransfer(id);
  }

  addTransfer(request: TransferRequest): void {
    this.#transfers.set(request.id, request);
  }

  push(
    kind: JournalKind,
    id: string,
    account: AccountName,
    amount: MicroUsd,
    counterparty: string | null = null,
  ): void {
    const at = this.now;
    this.#journal.push({ kind, id, account, counterparty, amount, charged: 0n, fee: 0n, drawn: 0n, price: null, at });
  }

  pushSettle(row: LockRow, earnings: AccountName, holds: MicroUsd): void {
    this.#journal.push({
      kind: 'settle',
      id: row.id,
      account: escrowOf(row.account),
      counterparty: earnings,
      amount: holds,
      charged: row.charged,
      fee: row.fee,
      drawn: row.drawn,
      price: row.price,
      at: this.now,
    });
  }

  written(): Written {
    const newLocks = this.#newLocks;
    const changed = this.#changedLocks.values;
    const isNew = changed.length > 0 ? new Set(newLocks) : null;
    return {
      journal: this.#journal,
      accounts: this.#accounts.values.filter(isChanged),
      budgets: this.#budgets.values.filter(isUsed),
      newLocks,
      resolvedLocks: this.#resolvedLocks,
      changedLocks: isNew ? changed.filter(({ row }) => !isNew.has(row)) : changed,
      transfers: this.#transfers.values,
    };
  }
}

const isChanged = (row: AccountChange | null): row is AccountChange =>
  row !== null && (row.isNew || row.available !== row.availableBefore || row.locked !== row.lockedBefore);
const isUsed = (row: BudgetChange): boolean => row.spent !== row.spentBefore || row.locked !== row.lockedBefore;

/** Up to so many rows are searched one by one, which costs less than a Map. Most operations touch two or three rows. */
const FEW_ROWS = 8;

/** Rows by their ids, in the order in which they were set first. */
class Rows<T> {
  readonly #ids: string[] = [];
  readonly values: T[] = [];
  #places: Map<string, number> | null = null;

  get(id: string): T | undefined {
    const place = this.#placeOf(id);
    return place === -1 ? undefined : this.values[place];
  }

  set(id: string, row: T): void {
    const place = this.#placeOf(id);
    if (place !== -1) {
      this.values[place] = row;
      return;
    }
    this.#places?.set(id, this.#ids.length);
    this.#ids.push(id);
    this.values.push(row);
    if (this.#places === null && this.#ids.length > FEW_ROWS)
      this.#places = new Map(this.#ids.map((each, index) => [each, index]));
  }

  #placeOf(id: string): number {
    return this.#places === null ? this.#ids.indexOf(id) : (this.#places.get(id) ?? -1);
  }
}

const changeOf = ({ id, available, locked }: AccountRow, isNew: boolean): AccountChange => ({
  id,
  available,
  locked,
  isNew,
  availableBefore: available,
  lockedBefore: locked,
});

const emptyAccount = (id: AccountName): AccountChange => changeOf({ id, available: 0n, locked: 0n }, true);

const NOTHING_SPENT = { spent: 0n, locked: 0n };

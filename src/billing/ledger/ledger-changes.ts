import {
  escrowOf,
  type AccountName,
  type LockRecord,
  type LockRequest,
  type Settlement,
  type TransferRequest,
} from './ledger.ts';
import type { LedgerOperation } from './ledger-operations.ts';
import type { MicroUsd } from '../prices/money.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/**
 * A lock as a batch works on it. For a lock of an earlier batch only the columns that decide are read, so the fields of
 * its resolution are blank until this batch fills them in.
 */
export interface LockRow extends Mutable<LockRecord> {
  /** The stripe whose money it holds, and whose budgets count it. Absent: the rows of the account and the budgets. */
  readonly heldIn?: number | undefined;
}

/** The row of an account, or one of its stripes: a part of the balance, on which one gateway of PostgreSQL decides. */
export interface AccountRow {
  readonly id: AccountName;
  readonly stripe?: number | undefined;
  available: MicroUsd;
  locked: MicroUsd;
}

export interface BudgetRow {
  readonly id: string;
  readonly stripe?: number | undefined;
  spent: MicroUsd;
  locked: MicroUsd;
  /**
   * Of a stripe: what it may count as spent and locked together. Of the budget's own row: the sum of all its stripes.
   * Absent: none.
   */
  leased?: MicroUsd | undefined;
  /** Of a stripe: the limit, without what is carried, when its room was given. Locks with another have none here. */
  readonly most?: MicroUsd | undefined;
}

/**
 * The rows that operations touch, as the database holds them now. Each is read at most once per batch, and may be
 * changed in place.
 */
export interface LedgerState {
  account(id: AccountName, stripe?: number): AccountRow | undefined;
  lock(id: string): LockRow | undefined;
  budget(id: string, stripe?: number): BudgetRow | undefined;
  hasTransfer(id: string): boolean;
  /** The stripe that a new lock takes its money from, with room for it. Absent: none. */
  stripeOf?(request: LockRequest): number | undefined;
  /** Accounts and budgets whose stripes were folded into their rows. Absent: none. */
  readonly folded?: { readonly accounts: ReadonlySet<string>; readonly budgets: ReadonlySet<string> };
}

/**
 * The kind of a row. A lock under another lock is two rows: `lend` makes that amount of the parent's locked money
 * available, and `lock` locks it again. A resolution whose rest goes back to the parent is also two rows: the
 * resolution frees all that the lock held, and `return` locks the rest again for the parent. So a balance is the sum of
 * its rows, without knowing which lock lent to which.
 */
export type JournalKind = Exclude<LedgerOperation['kind'], 'keep'> | 'lend' | 'return';

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
  readonly leasedBefore: MicroUsd | undefined;
}

/** A change of a lock of an earlier batch that is not its resolution: `lent`, `isKept` or `expiresAt`. */
interface LockChange {
  readonly id: string;
  readonly row: LockRow;
  readonly lentBefore: MicroUsd;
}

type OpenLock = Omit<
  LockRecord,
  keyof Settlement | 'feeBps' | 'price' | 'provider' | 'resolvedAt' | 'usage' | 'detail'
>;

/** A lock without a resolution. `heldIn`: see LockRow. */
export function openLock(lock: OpenLock, heldIn?: number): LockRow {
  const row: LockRow = {
    id: lock.id,
    account: lock.account,
    amount: lock.amount,
    parent: lock.parent,
    depth: lock.depth,
    lendable: lock.lendable,
    lent: lock.lent,
    isKept: lock.isKept,
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
  return heldIn === undefined ? row : { ...row, heldIn };
}

/** The ids of a lock's budgets as the column `budget` stores them: separated by spaces, NULL for none. */
export const budgetText = (budgets: readonly string[]): string | null =>
  budgets.length === 0 ? null : budgets.join(' ');

/**
 * True for a new lock that has no part in a run. It is written without the columns for runs, because their defaults
 * fit.
 */
export function isPlain(row: LockRow): boolean {
  return row.parent === null && row.lendable === 0n && !row.isKept;
}

export interface BatchRows {
  readonly journal: readonly JournalRow[];
  readonly accounts: readonly AccountChange[];
  readonly budgets: readonly BudgetChange[];
  readonly newLocks: readonly LockRow[];
  /** Locks that this batch resolves, made by earlier batches or by this one. */
  readonly resolvedLocks: readonly LockRow[];
  readonly changedLocks: readonly LockChange[];
  readonly transfers: readonly TransferRequest[];
}

/**
 * The rows that a batch has read so far, with its changes, and the journal of these changes. Most batches of the
 * embedded ledger are one operation, so lists are only made when they get a row.
 */
export class LedgerChanges {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly #state: LedgerState;
  readonly #accounts = new Rows<AccountChange>();
  readonly #locks = new Rows<LockRow>();
  #budgets: Rows<BudgetChange> | null = null;
  #changedLocks: Rows<LockChange> | null = null;
  #transfers: Rows<TransferRequest> | null = null;
  #newLocks: LockRow[] | null = null;
  #resolvedLocks: LockRow[] | null = null;
  #journal: JournalRow[] | null = null;

  constructor(state: LedgerState, now: number) {
    this.#state = state;
    this.now = now;
  }

  /** `stripe`: one of its stripes instead of its row. */
  account(id: AccountName, stripe?: number): AccountChange | null {
    const change = this.#accounts.get(id, stripe);
    if (change !== undefined) return change;
    const row = this.#state.account(id, stripe);
    return row ? this.#accounts.add(changeOf(row, false)) : null;
  }

  /** The account; a missing one is created. */
  openAccount(id: AccountName): AccountChange {
    return this.account(id) ?? this.#accounts.add(emptyAccount(id));
  }

  /**
   * The account, or zeros that are never written. For operations that may move no money: a free call must not create an
   * account, because the account would look funded afterwards.
   */
  accountOrNothing(id: AccountName, stripe?: number): AccountChange {
    return this.account(id, stripe) ?? emptyAccount(id);
  }

  budget(id: string, stripe?: number): BudgetChange {
    const budgets = (this.#budgets ??= new Rows());
    const change = budgets.get(id, stripe);
    if (change !== undefined) return change;
    const { spent, locked, leased, most } = this.#state.budget(id, stripe) ?? NOTHING_SPENT;
    const before = { spentBefore: spent, lockedBefore: locked, leasedBefore: leased };
    return budgets.add({ id, stripe, spent, locked, leased, most, ...before });
  }

  /**
   * The row that gets what a lock gives back: the stripe of the lock, or the account's own row if the stripes were
   * folded because something else in the group needs all of it.
   */
  homeOf({ account, heldIn }: LockRow): AccountChange {
    const id = escrowOf(account);
    return this.accountOrNothing(id, this.#state.folded?.accounts.has(id) === true ? undefined : heldIn);
  }

  /** Counts the end of a lock that held `holds` and was charged `charged` in its budgets. */
  endInBudgets({ budgets, heldIn }: LockRow, holds: MicroUsd, charged: MicroUsd): void {
    for (const id of budgets) {
      const budget = this.budget(id, heldIn);
      budget.locked -= holds;
      if (heldIn === undefined || this.#state.folded?.budgets.has(id) !== true) {
        budget.spent += charged;
        continue;
      }
      const whole = this.budget(id);
      whole.spent += charged;
      whole.leased = (whole.leased ?? 0n) - holds;
      budget.leased = (budget.leased ?? 0n) - holds;
    }
  }

  /** The stripe that a new lock takes its money from; undefined for the rows themselves. */
  stripeOf(request: LockRequest): number | undefined {
    return this.#state.stripeOf?.(request);
  }

  lock(id: string): LockRow | undefined {
    const lockRow = this.#locks.get(id);
    if (lockRow !== undefined) return lockRow;
    const row = this.#state.lock(id);
    return row && this.#locks.add(row);
  }

  heldLock(id: string): LockRow | 'not_found' | 'already_resolved' {
    const row = this.lock(id);
    if (!row) return 'not_found';
    return row.state === 'held' ? row : 'already_resolved';
  }

  addLock(row: LockRow): void {
    this.#locks.add(row);
    this.#newLocks = withOne(this.#newLocks, row);
  }

  /** Must be called before the first change of a lock that is not its resolution. */
  changeLock(row: LockRow): void {
    const changed = (this.#changedLocks ??= new Rows());
    if (changed.get(row.id) === undefined) changed.add({ id: row.id, row, lentBefore: row.lent });
  }

  resolveLock(row: LockRow, state: LockRow['state'], detail: string | null): void {
    row.state = state;
    row.resolvedAt = this.now;
    row.detail = detail;
    this.#resolvedLocks = withOne(this.#resolvedLocks, row);
  }

  hasTransfer(id: string): boolean {
    return this.#transfers?.get(id) !== undefined || this.#state.hasTransfer(id);
  }

  addTransfer(request: TransferRequest): void {
    (this.#transfers ??= new Rows()).add(request);
  }

  push(
    kind: JournalKind,
    id: string,
    account: AccountName,
    amount: MicroUsd,
    counterparty: string | null = null,
  ): void {
    const at = this.now;
    const row = { kind, id, account, counterparty, amount, charged: 0n, fee: 0n, drawn: 0n, price: null, at } as const;
    this.#journal = withOne<JournalRow>(this.#journal, row);
  }

  pushSettle(row: LockRow, earnings: AccountName, holds: MicroUsd): void {
    this.#journal = withOne<JournalRow>(this.#journal, {
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

  written(): BatchRows {
    const newLocks = this.#newLocks ?? NONE;
    const changed = this.#changedLocks?.values ?? NONE;
    const isNew = changed.length > 0 ? new Set<LockRow>(newLocks) : null;
    return {
      journal: this.#journal ?? NONE,
      accounts: onlyThose(this.#accounts.values, isChanged),
      budgets: this.#budgets === null ? NONE : onlyThose(this.#budgets.values, isUsed),
      newLocks,
      resolvedLocks: this.#resolvedLocks ?? NONE,
      changedLocks: isNew ? changed.filter(({ row }) => !isNew.has(row)) : changed,
      transfers: this.#transfers?.values ?? NONE,
    };
  }
}

const isChanged = (row: AccountChange): boolean =>
  row.isNew || row.available !== row.availableBefore || row.locked !== row.lockedBefore;
const isUsed = (row: BudgetChange): boolean =>
  row.spent !== row.spentBefore || row.locked !== row.lockedBefore || row.leased !== row.leasedBefore;

const NONE: readonly never[] = [];

/** The list with one more element. A list of one has room for one: V8 gives an empty list room for 17 first. */
function withOne<T>(list: T[] | null, one: T): T[] {
  if (list === null) return [one];
  list.push(one);
  return list;
}

/** The list itself if the condition holds for each element, as it mostly does. */
const onlyThose = <T>(list: readonly T[], holds: (one: T) => boolean): readonly T[] =>
  list.every(holds) ? list : list.filter(holds);

/** Up to so many rows are searched one by one, which costs less than a Map. Most operations touch two or three rows. */
const FEW_ROWS = 8;

/** Rows by their ids and stripes, in the order in which they were added. */
class Rows<T extends { readonly id: string; readonly stripe?: number | undefined }> {
  #rows: T[] | null = null;
  #byId: Map<string, T> | null = null;

  get values(): readonly T[] {
    return this.#rows ?? NONE;
  }

  get(id: string, stripe?: number): T | undefined {
    if (this.#byId !== null) return this.#byId.get(keyOf(id, stripe));
    if (this.#rows !== null) for (const row of this.#rows) if (row.id === id && row.stripe === stripe) return row;
    return undefined;
  }

  /** Its id must be a new one. */
  add(row: T): T {
    this.#rows = withOne(this.#rows, row);
    if (this.#byId !== null) this.#byId.set(keyOf(row.id, row.stripe), row);
    else if (this.#rows.length > FEW_ROWS)
      this.#byId = new Map(this.#rows.map((each) => [keyOf(each.id, each.stripe), each]));
    return row;
  }
}

/** The key of a row, or of its stripe. Stripes are numbers, so no two keys are the same text. */
export const keyOf = (id: string, stripe: number | undefined): string =>
  stripe === undefined ? id : `${stripe}\n${id}`;

const changeOf = ({ id, stripe, available, locked }: AccountRow, isNew: boolean): AccountChange => ({
  id,
  stripe,
  available,
  locked,
  isNew,
  availableBefore: available,
  lockedBefore: locked,
});

const emptyAccount = (id: AccountName): AccountChange => changeOf({ id, available: 0n, locked: 0n }, true);

const NOTHING_SPENT: Omit<BudgetRow, 'id'> = { spent: 0n, locked: 0n };

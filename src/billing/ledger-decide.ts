import {
  earningsOf,
  escrowOf,
  FEES,
  LOCK_LEVELS,
  type AccountName,
  type KeepResult,
  type LockRefusal,
  type LockRecord,
  type LockRequest,
  type LockResult,
  type ReleaseResult,
  type SettleRequest,
  type SettleResult,
  type Settlement,
  type TransferRequest,
  type TransferResult,
} from './ledger.ts';
import {
  feeOf,
  type ExpireRequest,
  type KeepRequest,
  type Operation,
  type OperationResult,
} from './ledger-operations.ts';
import type { MicroUsd } from './money.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Of a lock of an earlier batch only what decides is read: its resolution is blank until this batch fills it in. */
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
 * The rows that operations touch, as the database holds them now. Each is asked for at most once per batch, and may
 * be changed in place.
 */
export interface LedgerState {
  account(id: AccountName): AccountRow | undefined;
  lock(id: string): LockRow | undefined;
  budget(id: string): BudgetRow | undefined;
  hasTransfer(id: string): boolean;
}

/**
 * What a row tells. A lock under another is two rows: `lend` makes that much of what the parent has locked
 * available, `lock` takes it again. So is a resolution whose rest goes back to the parent: it frees all that the
 * lock held, and `return` locks the rest again, for the parent. So balances are the sum of the rows, one by one,
 * without knowing who lent to whom.
 */
export type JournalKind = Exclude<Operation['kind'], 'keep'> | 'lend' | 'return';

/** One movement of an effective operation. Refused operations leave no row, and a lock that is kept moves nothing. */
export interface JournalRow {
  readonly kind: JournalKind;
  readonly id: string;
  readonly account: AccountName;
  /** The other account; of `lend` and `return` the id of the parent lock. */
  readonly counterparty: string | null;
  /** Of a resolution: what the lock held. */
  readonly amount: MicroUsd;
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  readonly drawn: MicroUsd;
  readonly price: string | null;
  readonly at: number;
}

/** A row as it will be, with what the database held before (zeros and `isNew` when it had none). */
export interface AccountChange extends AccountRow {
  readonly isNew: boolean;
  readonly availableBefore: MicroUsd;
  readonly lockedBefore: MicroUsd;
}

export interface BudgetChange extends BudgetRow {
  readonly spentBefore: MicroUsd;
  readonly lockedBefore: MicroUsd;
}

/** A lock of an earlier batch of which something else than its resolution changes: `lent`, `kept`, `expiresAt`. */
export interface LockChange {
  readonly row: LockRow;
  readonly lentBefore: MicroUsd;
}

export interface Decision {
  /** One per operation, in their order. */
  readonly results: readonly OperationResult[];
  readonly journal: readonly JournalRow[];
  readonly accounts: readonly AccountChange[];
  readonly budgets: readonly BudgetChange[];
  readonly newLocks: readonly LockRow[];
  /** Locks that this batch resolves, of earlier batches and of its own. */
  readonly resolvedLocks: readonly LockRow[];
  readonly changedLocks: readonly LockChange[];
  readonly transfers: readonly TransferRequest[];
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
    budget: lock.budget,
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

/**
 * True for a new lock that has no part in a run; it is written without the columns of those, whose defaults say the
 * same.
 */
export function isPlain(row: LockRow): boolean {
  return row.parent === null && row.lendable === 0n && !row.kept;
}

/**
 * Decides a batch: applies the operations one after the other to the rows, exactly as if each were alone.
 * Pure apart from the rows it was given; both engines use it, so that both decide alike.
 */
export function decide(state: LedgerState, operations: readonly Operation[], now: number): Decision {
  const accounts = new Map<string, AccountChange | null>();
  const budgets = new Map<string, BudgetChange>();
  const locks = new Map<string, LockRow | undefined>();
  const newLocks: LockRow[] = [];
  const resolvedLocks: LockRow[] = [];
  const changedLocks = new Map<string, LockChange>();
  const transfers = new Map<string, TransferRequest>();
  const journal: JournalRow[] = [];

  const account = (id: AccountName): AccountChange | null => {
    let found = accounts.get(id);
    if (found === undefined) {
      const row = state.account(id);
      found = row ? { ...row, isNew: false, availableBefore: row.available, lockedBefore: row.locked } : null;
      accounts.set(id, found);
    }
    return found;
  };
  const openAccount = (id: AccountName): AccountChange => {
    let found = account(id);
    if (!found)
      accounts.set(id, (found = { id, available: 0n, locked: 0n, isNew: true, availableBefore: 0n, lockedBefore: 0n }));
    return found;
  };
  /** For what moves nothing where it has no row: a free call makes no account, which would look funded afterwards. */
  const accountOrNothing = (id: AccountName): AccountChange =>
    account(id) ?? { id, available: 0n, locked: 0n, isNew: true, availableBefore: 0n, lockedBefore: 0n };
  const budget = (id: string): BudgetChange => {
    let found = budgets.get(id);
    if (!found) {
      const row = state.budget(id) ?? { id, spent: 0n, locked: 0n };
      found = { ...row, spentBefore: row.spent, lockedBefore: row.locked };
      budgets.set(id, found);
    }
    return found;
  };
  const lockRow = (id: string): LockRow | undefined => {
    let found = locks.get(id);
    if (found === undefined && !locks.has(id)) locks.set(id, (found = state.lock(id)));
    return found;
  };

  const push = (
    kind: JournalKind,
    id: string,
    name: AccountName,
    amount: MicroUsd,
    counterparty: string | null = null,
  ) => {
    journal.push({
      kind,
      id,
      account: name,
      counterparty,
      amount,
      charged: 0n,
      fee: 0n,
      drawn: 0n,
      price: null,
      at: now,
    });
  };
  /** To be called before the first change of a row. */
  const change = (row: LockRow) => {
    if (!changedLocks.has(row.id)) changedLocks.set(row.id, { row, lentBefore: row.lent });
  };

  const lock = (request: LockRequest): LockResult => {
    const { id, amount } = request;
    const name = escrowOf(request.account);
    const escrow = accountOrNothing(name);
    const { available } = escrow;
    if (lockRow(id)) return { ok: false, reason: 'duplicate', available };
    let parent: LockRow | null = null;
    if (request.parent !== undefined) {
      const found = lockRow(request.parent);
      const refuse = (reason: LockRefusal, left: MicroUsd): LockResult => ({ ok: false, reason, available: left });
      if (found?.state !== 'held' || found.account !== request.account) return refuse('parent_over', 0n);
      const left = found.lendable - found.lent;
      if (found.depth + 1 >= LOCK_LEVELS) return refuse('too_deep', left);
      if (left < amount) return refuse('parent_exhausted', left);
      parent = found;
    }
    // What costs nothing needs no money, nor an account for it.
    if (amount > 0n && account(name) === null) return { ok: false, reason: 'no_account', available };
    if (parent) {
      change(parent);
      parent.lent += amount;
      push('lend', id, name, amount, parent.id);
    } else {
      if (escrow.available < amount) return { ok: false, reason: 'insufficient', available };
      if (request.budget && amount > 0n) {
        const limited = budget(request.budget.id);
        if (limited.spent + limited.locked + amount > request.budget.limit)
          return { ok: false, reason: 'budget_exceeded', available };
        limited.locked += amount;
      }
      escrow.available -= amount;
      escrow.locked += amount;
    }
    const row = openLock({
      id,
      account: request.account,
      amount,
      parent: parent?.id ?? null,
      depth: parent ? parent.depth + 1 : 0,
      lendable: request.lendable ?? 0n,
      lent: 0n,
      kept: false,
      prices: request.prices,
      budget: parent ? parent.budget : (request.budget?.id ?? null),
      state: 'held',
      createdAt: now,
      expiresAt: request.expiresAt,
      lockDetail: request.detail,
    });
    locks.set(id, row);
    newLocks.push(row);
    push('lock', id, name, amount);
    return { ok: true, available: escrow.available };
  };

  const held = (id: string): LockRow | 'not_found' | 'already_resolved' => {
    const row = lockRow(id);
    if (!row) return 'not_found';
    return row.state === 'held' ? row : 'already_resolved';
  };
  const resolve = (row: LockRow, state: LockRow['state'], detail: string | null) => {
    row.state = state;
    row.resolvedAt = now;
    row.detail = detail;
    resolvedLocks.push(row);
  };

  /**
   * Locks again what a lock has just given back, for its parent; stays with what is available when the parent has
   * ended before.
   */
  const giveToParent = (row: LockRow, escrow: AccountChange, rest: MicroUsd) => {
    const parent = lockRow(row.parent!);
    if (parent?.state !== 'held' || rest === 0n) return;
    change(parent);
    parent.lent -= rest;
    escrow.available -= rest;
    escrow.locked += rest;
    // The parent's budget is the lock's own.
    if (row.budget !== null) budget(row.budget).locked += rest;
    push('return', row.id, escrow.id, rest, parent.id);
  };

  const settle = (request: SettleRequest): SettleResult => {
    const row = held(request.id);
    if (typeof row === 'string') return { ok: false, reason: row };
    if (!row.prices.includes(request.price)) return { ok: false, reason: 'wrong_price' };
    const { charge } = request;
    const name = escrowOf(row.account);
    const escrow = accountOrNothing(name);
    const holds = row.amount - row.lent;
    const own = row.amount - row.lendable;
    const excess = charge > own ? charge - own : 0n;
    const drawn = !request.draw || row.parent !== null ? 0n : excess < escrow.available ? excess : escrow.available;
    const charged = charge - excess + drawn;
    const fee = feeOf(charged, request.feeBps, row.id);
    const shortfall = excess - drawn;
    escrow.locked -= holds;
    escrow.available += holds - charged;
    const earnings = earningsOf(request.provider);
    if (charged > fee) openAccount(earnings).available += charged - fee;
    if (fee > 0n) openAccount(FEES).available += fee;
    if (row.budget !== null) {
      const limited = budget(row.budget);
      limited.locked -= holds;
      limited.spent += charged;
    }
    row.price = request.price;
    row.provider = request.provider;
    row.charged = charged;
    row.fee = fee;
    row.feeBps = request.feeBps;
    row.drawn = drawn;
    row.shortfall = shortfall;
    row.usage = request.usage;
    resolve(row, 'settled', request.detail);
    journal.push({
      kind: 'settle',
      id: row.id,
      account: name,
      counterparty: earnings,
      amount: holds,
      charged,
      fee,
      drawn,
      price: request.price,
      at: now,
    });
    if (row.parent !== null) giveToParent(row, escrow, holds - charged);
    return { ok: true, charged, fee, drawn, shortfall };
  };

  const giveBack = (row: LockRow, kind: 'release' | 'expire', detail: string | null): ReleaseResult => {
    const name = escrowOf(row.account);
    const escrow = accountOrNothing(name);
    const holds = row.amount - row.lent;
    escrow.locked -= holds;
    escrow.available += holds;
    if (row.budget !== null) budget(row.budget).locked -= holds;
    resolve(row, kind === 'release' ? 'released' : 'expired', detail);
    push(kind, row.id, name, holds);
    if (row.parent !== null) giveToParent(row, escrow, holds);
    return { ok: true };
  };

  const expire = ({ id, at, spareKept }: ExpireRequest): ReleaseResult => {
    const row = held(id);
    if (typeof row === 'string') return { ok: false, reason: row };
    // A lock whose time is not over, or that is kept, is none that could be expired.
    return row.expiresAt > at || (spareKept && row.kept)
      ? { ok: false, reason: 'not_found' }
      : giveBack(row, 'expire', null);
  };

  const keep = ({ id, until }: KeepRequest): KeepResult => {
    const row = held(id);
    if (typeof row === 'string') return { ok: false, reason: row };
    if (row.kept && row.expiresAt >= until) return { ok: true };
    change(row);
    row.kept = true;
    row.expiresAt = Math.max(row.expiresAt, until);
    return { ok: true };
  };

  const transfer = (request: TransferRequest): TransferResult => {
    const { id, from, to, amount } = request;
    const available = account(from)?.available ?? 0n;
    if (transfers.has(id) || state.hasTransfer(id)) return { ok: false, reason: 'duplicate', available };
    if (available < amount && !from.startsWith('treasury:')) return { ok: false, reason: 'insufficient', available };
    openAccount(from).available -= amount;
    openAccount(to).available += amount;
    transfers.set(id, request);
    push('transfer', id, from, amount, to);
    return { ok: true };
  };

  const apply = (operation: Operation): OperationResult => {
    switch (operation.kind) {
      case 'lock':
        return lock(operation.request);
      case 'settle':
        return settle(operation.request);
      case 'transfer':
        return transfer(operation.request);
      case 'release': {
        const row = held(operation.request.id);
        return typeof row === 'string'
          ? { ok: false, reason: row }
          : giveBack(row, 'release', operation.request.detail);
      }
      case 'expire':
        return expire(operation.request);
      case 'keep':
        return keep(operation.request);
    }
  };

  const results = operations.map(apply);
  const isNew = changedLocks.size > 0 ? new Set(newLocks) : null;
  return {
    results,
    journal,
    accounts: [...accounts.values()]
      .filter((row) => row !== null)
      .filter((row) => row.isNew || row.available !== row.availableBefore || row.locked !== row.lockedBefore),
    budgets: [...budgets.values()].filter((row) => row.spent !== row.spentBefore || row.locked !== row.lockedBefore),
    newLocks,
    resolvedLocks,
    changedLocks: isNew ? [...changedLocks.values()].filter(({ row }) => !isNew.has(row)) : [],
    transfers: [...transfers.values()],
  };
}

import {
  earningsOf,
  escrowOf,
  FEES,
  limitOf,
  LOCK_LEVELS,
  mayBeNegative,
  withCarried,
  type Budget,
  type KeepResult,
  type LockRequest,
  type LockResult,
  type ReleaseRequest,
  type ReleaseResult,
  type SettleRequest,
  type SettleResult,
  type TransferRequest,
  type TransferResult,
} from './ledger.ts';
import { LedgerChanges, openLock, type LedgerState, type LockRow, type BatchRows } from './ledger-changes.ts';
import {
  feeOf,
  type ExpireRequest,
  type KeepRequest,
  type LedgerOperation,
  type OperationResult,
} from './ledger-operations.ts';
import type { MicroUsd } from '../prices/money.ts';

export interface Decision extends BatchRows {
  /** One per operation, in their order. */
  readonly results: readonly OperationResult[];
}

/**
 * Decides a batch: applies the operations to the rows one after the other, exactly as if each were alone. It has no
 * side effects except on the given rows. Both engines use it, so both decide alike.
 */
export function decide(state: LedgerState, operations: readonly LedgerOperation[], now: number): Decision {
  const changes = new LedgerChanges(state, now);
  const results = operations.map((operation) => apply(changes, operation));
  return { results, ...changes.written() };
}

/** Decides one operation, as `decide` does. Without the lists of a batch it takes half of the memory. */
export function decideOne(
  state: LedgerState,
  operation: LedgerOperation,
  now: number,
): { readonly result: OperationResult; readonly written: BatchRows } {
  const changes = new LedgerChanges(state, now);
  const result = apply(changes, operation);
  return { result, written: changes.written() };
}

function apply(changes: LedgerChanges, { kind, request }: LedgerOperation): OperationResult {
  switch (kind) {
    case 'lock':
      return lock(changes, request);
    case 'settle':
      return settle(changes, request);
    case 'transfer':
      return transfer(changes, request);
    case 'release':
      return release(changes, request);
    case 'expire':
      return expire(changes, request);
    case 'keep':
      return keep(changes, request);
  }
}

function lock(changes: LedgerChanges, request: LockRequest): LockResult {
  const { id, amount, budgets = NO_BUDGETS } = request;
  const name = escrowOf(request.account);
  const { available } = changes.accountOrNothing(name, changes.stripeOf(request));
  if (changes.lock(id)) return { ok: false, reason: 'duplicate', available };
  const parent = request.parent === undefined ? null : parentOf(changes, request, request.parent);
  if (parent && 'ok' in parent) return parent;
  // The money of a parent is where the parent's lock is.
  const stripe = parent ? parent.heldIn : changes.stripeOf(request);
  const escrow = changes.accountOrNothing(name, stripe);
  // Budgets are checked before the balance. A client may pay in place for a missing balance, and must not pay for a
  // call that a budget would refuse afterwards.
  const full = parent ? null : fullBudget(changes, request, stripe);
  if (full) return { ok: false, reason: 'budget_exceeded', available, budget: full };
  // A lock of 0 needs no account.
  if (amount > 0n && changes.account(name, stripe) === null) return { ok: false, reason: 'no_account', available };
  if (parent) {
    changes.changeLock(parent);
    parent.lent += amount;
    changes.push('lend', id, name, amount, parent.id);
  } else {
    if (escrow.available < amount) return { ok: false, reason: 'insufficient', available };
    if (amount > 0n) for (const budget of budgets) changes.budget(budget.id, stripe).locked += amount;
    escrow.available -= amount;
    escrow.locked += amount;
  }
  const row: Parameters<typeof openLock>[0] = {
    id,
    account: request.account,
    amount,
    parent: parent?.id ?? null,
    depth: parent ? parent.depth + 1 : 0,
    lendable: request.lendable ?? 0n,
    lent: 0n,
    isKept: false,
    prices: request.prices,
    budgets: parent ? parent.budgets : budgets.map((budget) => budget.id),
    state: 'held',
    createdAt: changes.now,
    expiresAt: request.expiresAt,
    lockDetail: request.detail,
  };
  changes.addLock(openLock(row, stripe));
  changes.push('lock', id, name, amount);
  return { ok: true, available: escrow.available };
}

const NO_BUDGETS: readonly Budget[] = [];

type FullBudget = Extract<LockResult, { reason: 'budget_exceeded' }>['budget'];

/** The first budget without room for a lock; null if every budget has room. A lock of 0 always fits. */
function fullBudget(
  changes: LedgerChanges,
  { amount, budgets = NO_BUDGETS }: LockRequest,
  stripe: number | undefined,
): FullBudget | null {
  if (amount === 0n) return null;
  for (const budget of budgets) {
    const row = changes.budget(budget.id, stripe);
    const { spent, locked } = withCarried(row, budget.carried);
    const leased = row.leased ?? 0n;
    const isFull =
      stripe === undefined
        ? spent + locked + leased + amount > budget.limit
        : row.spent + row.locked + amount > leased || row.most !== limitOf(budget);
    if (isFull) return { id: budget.id, limit: budget.limit, spent, locked: locked + leased };
  }
  return null;
}

/** The parent that a lock takes its money from, or the refusal. */
function parentOf(changes: LedgerChanges, { account, amount }: LockRequest, id: string): LockRow | LockResult {
  const parent = changes.lock(id);
  if (parent?.state !== 'held' || parent.account !== account)
    return { ok: false, reason: 'parent_over', available: 0n };
  const remaining = parent.lendable - parent.lent;
  if (parent.depth + 1 >= LOCK_LEVELS) return { ok: false, reason: 'too_deep', available: remaining };
  if (remaining < amount) return { ok: false, reason: 'parent_exhausted', available: remaining };
  return parent;
}

function settle(changes: LedgerChanges, request: SettleRequest): SettleResult {
  const row = changes.heldLock(request.id);
  if (typeof row === 'string') return { ok: false, reason: row };
  if (!row.prices.includes(request.price)) return { ok: false, reason: 'wrong_price' };
  const { charge } = request;
  const escrow = changes.accountOrNothing(escrowOf(row.account), row.heldIn);
  const home = changes.homeOf(row);
  const holds = row.amount - row.lent;
  const own = row.amount - row.lendable;
  const excess = charge > own ? charge - own : 0n;
  const drawn = !request.draw || row.parent !== null ? 0n : excess < home.available ? excess : home.available;
  const charged = charge - excess + drawn;
  const fee = feeOf(charged, request.feeBps, row.id);
  const shortfall = excess - drawn;
  escrow.locked -= holds;
  home.available += holds - charged;
  const earnings = earningsOf(request.provider);
  if (charged > fee) changes.openAccount(earnings).available += charged - fee;
  if (fee > 0n) changes.openAccount(FEES).available += fee;
  changes.endInBudgets(row, holds, charged);
  row.price = request.price;
  row.provider = request.provider;
  row.charged = charged;
  row.fee = fee;
  row.feeBps = request.feeBps;
  row.drawn = drawn;
  row.shortfall = shortfall;
  row.usage = request.usage;
  changes.resolveLock(row, 'settled', request.detail);
  changes.pushSettle(row, earnings, holds);
  giveToParent(changes, row, holds - charged);
  return { ok: true, charged, fee, drawn, shortfall, resolvedAt: changes.now };
}

/** Locks the rest of a resolved lock again for its parent. If the parent has ended before, the rest stays available. */
function giveToParent(changes: LedgerChanges, row: LockRow, rest: MicroUsd): void {
  if (row.parent === null) return;
  const parent = changes.lock(row.parent);
  if (parent?.state !== 'held' || rest === 0n) return;
  changes.changeLock(parent);
  parent.lent -= rest;
  const name = escrowOf(row.account);
  changes.homeOf(row).available -= rest;
  changes.accountOrNothing(name, row.heldIn).locked += rest;
  // The parent has the same budgets as the lock.
  changes.endInBudgets(row, -rest, 0n);
  changes.push('return', row.id, name, rest, parent.id);
}

function release(changes: LedgerChanges, { id, detail }: ReleaseRequest): ReleaseResult {
  const row = changes.heldLock(id);
  return typeof row === 'string' ? { ok: false, reason: row } : giveBack(changes, row, 'release', detail);
}

function expire(changes: LedgerChanges, { id, at, spareKept }: ExpireRequest): ReleaseResult {
  const row = changes.heldLock(id);
  if (typeof row === 'string') return { ok: false, reason: row };
  if (row.expiresAt > at || (spareKept && row.isKept)) return { ok: false, reason: 'not_found' };
  return giveBack(changes, row, 'expire', null);
}

function giveBack(
  changes: LedgerChanges,
  row: LockRow,
  kind: 'release' | 'expire',
  detail: string | null,
): ReleaseResult {
  const name = escrowOf(row.account);
  const holds = row.amount - row.lent;
  changes.accountOrNothing(name, row.heldIn).locked -= holds;
  changes.homeOf(row).available += holds;
  changes.endInBudgets(row, holds, 0n);
  changes.resolveLock(row, kind === 'release' ? 'released' : 'expired', detail);
  changes.push(kind, row.id, name, holds);
  giveToParent(changes, row, holds);
  return { ok: true };
}

function keep(changes: LedgerChanges, { id, until }: KeepRequest): KeepResult {
  const row = changes.heldLock(id);
  if (typeof row === 'string') return { ok: false, reason: row };
  if (row.isKept && row.expiresAt >= until) return { ok: true };
  changes.changeLock(row);
  row.isKept = true;
  row.expiresAt = Math.max(row.expiresAt, until);
  return { ok: true };
}

function transfer(changes: LedgerChanges, request: TransferRequest): TransferResult {
  const { id, from, to, amount } = request;
  const available = changes.account(from)?.available ?? 0n;
  if (changes.hasTransfer(id)) return { ok: false, reason: 'duplicate', available };
  if (available < amount && !mayBeNegative(from)) return { ok: false, reason: 'insufficient', available };
  changes.openAccount(from).available -= amount;
  changes.openAccount(to).available += amount;
  changes.addTransfer(request);
  changes.push('transfer', id, from, amount, to);
  return { ok: true, available: available - amount };
}

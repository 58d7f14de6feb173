import { earningsOf, escrowOf, FEES } from './ledger.ts';
import type {
  AccountName,
  LockRecord,
  LockRequest,
  LockResult,
  ReleaseResult,
  SettleRequest,
  SettleResult,
  TransferRequest,
  TransferResult,
} from './ledger.ts';
import { feeOf, type Operation, type OperationResult } from './ledger-operations.ts';
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

/** The rows that operations touch, as the database holds them now. Each is asked for at most once per batch, and may be changed in place. */
export interface LedgerState {
  account(id: AccountName): AccountRow | undefined;
  lock(id: string): LockRow | undefined;
  budget(id: string): BudgetRow | undefined;
  hasTransfer(id: string): boolean;
}

/** One effective operation. Refused operations leave no row. */
export interface JournalRow {
  readonly kind: Operation['kind'];
  readonly id: string;
  readonly account: AccountName;
  readonly counterparty: AccountName | null;
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

export interface Decision {
  /** One per operation, in their order. */
  readonly results: readonly OperationResult[];
  readonly journal: readonly JournalRow[];
  readonly accounts: readonly AccountChange[];
  readonly budgets: readonly BudgetChange[];
  readonly newLocks: readonly LockRow[];
  /** Locks that this batch resolves, of earlier batches and of its own. */
  readonly resolvedLocks: readonly LockRow[];
  readonly transfers: readonly TransferRequest[];
}

type OpenLock = Pick<LockRecord, 'id' | 'account' | 'amount' | 'prices' | 'budget' | 'state' | 'createdAt' | 'expiresAt' | 'lockDetail'>;

/** A lock without a resolution. */
export function openLock({ id, account, amount, prices, budget, state, createdAt, expiresAt, lockDetail }: OpenLock): LockRow {
  return {
    id,
    account,
    amount,
    prices,
    budget,
    state,
    price: null,
    provider: null,
    charged: 0n,
    fee: 0n,
    drawn: 0n,
    shortfall: 0n,
    createdAt,
    expiresAt,
    resolvedAt: null,
    lockDetail,
    usage: null,
    detail: null,
  };
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
    if (!found) accounts.set(id, (found = { id, available: 0n, locked: 0n, isNew: true, availableBefore: 0n, lockedBefore: 0n }));
    return found;
  };
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

  const lock = (request: LockRequest): LockResult => {
    const { id, amount } = request;
    const name = escrowOf(request.account);
    const escrow = account(name);
    const available = escrow?.available ?? 0n;
    if (lockRow(id)) return { ok: false, reason: 'duplicate', available };
    if (!escrow) return { ok: false, reason: 'no_account', available };
    if (escrow.available < amount) return { ok: false, reason: 'insufficient', available };
    if (request.budget) {
      const limited = budget(request.budget.id);
      if (limited.spent + limited.locked + amount > request.budget.limit) return { ok: false, reason: 'budget_exceeded', available };
      limited.locked += amount;
    }
    escrow.available -= amount;
    escrow.locked += amount;
    const row = openLock({ ...request, budget: request.budget?.id ?? null, state: 'held', createdAt: now, lockDetail: request.detail });
    locks.set(id, row);
    newLocks.push(row);
    journal.push({ kind: 'lock', id, account: name, counterparty: null, amount, charged: 0n, fee: 0n, drawn: 0n, price: null, at: now });
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

  const settle = (request: SettleRequest): SettleResult => {
    const row = held(request.id);
    if (typeof row === 'string') return { ok: false, reason: row };
    if (!row.prices.includes(request.price)) return { ok: false, reason: 'wrong_price' };
    const { charge } = request;
    const { amount } = row;
    const name = escrowOf(row.account);
    const escrow = openAccount(name);
    const excess = charge > amount ? charge - amount : 0n;
    const drawn = !request.draw ? 0n : excess < escrow.available ? excess : escrow.available;
    const charged = charge - excess + drawn;
    const fee = feeOf(charged, request.feeBps);
    const shortfall = excess - drawn;
    escrow.locked -= amount;
    escrow.available += amount - charged;
    const earnings = earningsOf(request.provider);
    if (charged > fee) openAccount(earnings).available += charged - fee;
    if (fee > 0n) openAccount(FEES).available += fee;
    if (row.budget !== null) {
      const limited = budget(row.budget);
      limited.locked -= amount;
      limited.spent += charged;
    }
    row.price = request.price;
    row.provider = request.provider;
    row.charged = charged;
    row.fee = fee;
    row.drawn = drawn;
    row.shortfall = shortfall;
    row.usage = request.usage;
    resolve(row, 'settled', request.detail);
    journal.push({ kind: 'settle', id: row.id, account: name, counterparty: earnings, amount, charged, fee, drawn, price: request.price, at: now });
    return { ok: true, charged, fee, drawn, shortfall };
  };

  const giveBack = (row: LockRow, kind: 'release' | 'expire', detail: string | null): ReleaseResult => {
    const { id, amount } = row;
    const name = escrowOf(row.account);
    const escrow = openAccount(name);
    escrow.locked -= amount;
    escrow.available += amount;
    if (row.budget !== null) budget(row.budget).locked -= amount;
    resolve(row, kind === 'release' ? 'released' : 'expired', detail);
    journal.push({ kind, id, account: name, counterparty: null, amount, charged: 0n, fee: 0n, drawn: 0n, price: null, at: now });
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
    journal.push({ kind: 'transfer', id, account: from, counterparty: to, amount, charged: 0n, fee: 0n, drawn: 0n, price: null, at: now });
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
        return typeof row === 'string' ? { ok: false, reason: row } : giveBack(row, 'release', operation.request.detail);
      }
      case 'expire': {
        const row = held(operation.request.id);
        if (typeof row === 'string') return { ok: false, reason: row };
        // A lock whose time is not over is none that could be expired.
        return row.expiresAt > operation.request.at ? { ok: false, reason: 'not_found' } : giveBack(row, 'expire', null);
      }
    }
  };

  const results = operations.map(apply);
  return {
    results,
    journal,
    accounts: [...accounts.values()]
      .filter((row) => row !== null)
      .filter((row) => row.isNew || row.available !== row.availableBefore || row.locked !== row.lockedBefore),
    budgets: [...budgets.values()].filter((row) => row.spent !== row.spentBefore || row.locked !== row.lockedBefore),
    newLocks,
    resolvedLocks,
    transfers: [...transfers.values()],
  };
}

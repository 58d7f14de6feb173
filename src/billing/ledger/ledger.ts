import type { MicroUsd } from '../prices/money.ts';

/**
 * The name of a ledger account:
 * - `escrow:<account>` is a consumer's. It is the only kind with a locked part.
 * - `earnings:<provider>`, `fees` and `suspense`.
 * - `treasury:<chain>` mirrors money that is held outside of the ledger. It is the only kind that may be negative.
 */
export type AccountName = string;

const ESCROW = 'escrow:';
export const escrowOf = (account: string): AccountName => `${ESCROW}${account}`;
/** The inverse of escrowOf; null for a name of another kind. */
export const consumerOf = (name: AccountName): string | null =>
  name.startsWith(ESCROW) ? name.slice(ESCROW.length) : null;
export const earningsOf = (provider: string): AccountName => `earnings:${provider}`;
export const FEES: AccountName = 'fees';
export const SUSPENSE: AccountName = 'suspense';
const TREASURY = 'treasury:';
export const treasuryOf = (chain: string): AccountName => `${TREASURY}${chain}`;
export const mayBeNegative = (account: AccountName): boolean => account.startsWith(TREASURY);
/**
 * Represents the operator in fields that name an account. The operator has no escrow account, only fees and a treasury.
 */
export const OPERATOR = 'tollgate:operator';
/** The operator's own money. Credit that the operator grants lowers it, and money that it puts on chains raises it. */
export const OPERATOR_TREASURY: AccountName = treasuryOf('operator');

export interface Balance {
  readonly available: MicroUsd;
  readonly locked: MicroUsd;
}

/**
 * A spending limit that is checked together with the balance: spent + locked + amount must stay within `limit`. `id`
 * names the spender and the reset period. It has no spaces and no quotes.
 */
export interface Budget {
  readonly id: string;
  readonly limit: MicroUsd;
  /** Added to the counter `id`: calls of the period that were counted in other counters, see CarriedSum. */
  readonly carried?: BudgetUse;
}

export interface LockRequest {
  /** Call id = lock id = generation id. */
  readonly id: string;
  /** The consumer's account, without the `escrow:` prefix. */
  readonly account: string;
  readonly amount: MicroUsd;
  /** The price versions that this lock was computed from. The settlement can only use one of them. */
  readonly prices: readonly string[];
  /** Epoch milliseconds after which the lock may be expired. */
  readonly expiresAt: number;
  /**
   * Every budget must have room for the whole lock. Their ids differ. Ignored for a lock with a parent, because its
   * money already counts in the parent's budgets.
   */
  readonly budgets?: readonly Budget[];
  /** The call has run already, so the lock is retried for as long as a settlement is. Default false. */
  readonly workDone?: boolean;
  readonly mayBeLate?: boolean;
  /**
   * No task keeps the lock, and no call is made under it. So nothing else refers to it before it ends. Default false.
   */
  readonly endsWithCall?: boolean;
  /**
   * The part of `amount` that locks under this one may draw. The settlement of this lock cannot charge it. Default 0.
   */
  readonly lendable?: MicroUsd;
  /** Id of the held lock of the same account that the money comes from, instead of the available balance. */
  readonly parent?: string;
  /** Opaque JSON text of the caller (what was called, by which key), stored with the generation. */
  readonly detail: string;
}

/** The sum of a budget's counter and of what is carried to it. */
export const withCarried = ({ spent, locked }: BudgetUse, carried: BudgetUse = NOTHING_USED): BudgetUse => ({
  spent: spent + carried.spent,
  locked: locked + carried.locked,
});

const NOTHING_USED: BudgetUse = { spent: 0n, locked: 0n };

/** The limit of a budget without what is carried to it: the most that its own counter may reach. */
export const limitOf = ({ limit, carried = NOTHING_USED }: Budget): MicroUsd => limit - carried.spent - carried.locked;

/** The most levels of locks under locks. A lock without a parent is the first level. */
export const LOCK_LEVELS = 8;

type LockRefusal =
  | 'insufficient'
  | 'no_account'
  | 'budget_exceeded'
  | 'duplicate'
  /** The parent is resolved, unknown or another account's. */
  | 'parent_over'
  /** The parent can lend less than `amount`. */
  | 'parent_exhausted'
  /** The parent is the last of LOCK_LEVELS. */
  | 'too_deep';

/**
 * `available` is the account's balance after the lock. If the parent caused the refusal, it is what the parent can
 * still lend (0 if the parent is over). If several gateways spend from the account, it is less than the balance, unless
 * the lock was refused for lack of money: each gateway knows only its own part.
 */
export type LockResult =
  | { readonly ok: true; readonly available: MicroUsd }
  | { readonly ok: false; readonly reason: Exclude<LockRefusal, 'budget_exceeded'>; readonly available: MicroUsd }
  | {
      readonly ok: false;
      readonly reason: 'budget_exceeded';
      readonly available: MicroUsd;
      /** The first budget without room for the lock. Its figures include what is carried. */
      readonly budget: Pick<Budget, 'id' | 'limit'> & BudgetUse;
    };

/** The money that a budget counts. */
export interface BudgetUse {
  readonly spent: MicroUsd;
  readonly locked: MicroUsd;
}

export interface SettleRequest {
  readonly id: string;
  /** One of the lock's price versions. */
  readonly price: string;
  /** The provider to pay, without the `earnings:` prefix. */
  readonly provider: string;
  /**
   * The cost of the call. It is cut to the lock without its lendable part. If `draw` is set and the lock has no parent,
   * the rest is drawn from the available balance, as far as that goes.
   */
  readonly charge: MicroUsd;
  readonly draw: boolean;
  /** The operator's fee in basis points of the charge. See feeOf for the rounding. */
  readonly feeBps: number;
  /** Opaque JSON texts, stored with the generation: the metered usage, and how the call went. */
  readonly usage: string;
  readonly detail: string;
  /**
   * The lock was made by the call that ends it, nothing outside of the ledger tells of the end, and nobody gets a proof
   * of it. A ledger with `flushMs` answers such an end before the disk has it. Default false.
   */
  readonly mayBeLate?: boolean;
}

export interface Settlement {
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  /** The part of `charged` that exceeded the lock and was drawn from the available balance. */
  readonly drawn: MicroUsd;
  /** The part of the cost that could not be charged. */
  readonly shortfall: MicroUsd;
}

interface Settled extends Settlement {
  /** Epoch ms. If it was answered before the disk has it, the time in the books may be later. */
  readonly resolvedAt: number;
}

export type SettleResult =
  | ({ readonly ok: true } & Settled)
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' | 'wrong_price' };

export interface ReleaseRequest {
  readonly id: string;
  /** The account of the lock. With it, the release is in one group with what the account does at the same moment. */
  readonly account?: string;
  readonly detail: string;
  readonly mayBeLate?: boolean;
}

export type ReleaseResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' };

export interface TransferRequest {
  /** Unique over all transfers, for ever. A repeated id is refused as `duplicate`, so money never moves twice. */
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
}

export type KeepResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' };

/** `available` is the balance of `from`, after the transfer if it was made. */
export type TransferResult =
  | { readonly ok: true; readonly available: MicroUsd }
  | { readonly ok: false; readonly reason: 'insufficient' | 'duplicate'; readonly available: MicroUsd };

export type LockState = 'held' | 'settled' | 'released' | 'expired';

/**
 * A lock with its resolution: the money side of a generation. While it is held it holds `amount - lent`. When it is
 * resolved, the part that is not charged goes back to its parent if the parent is held, else to the available balance.
 */
export interface LockRecord extends Settlement {
  readonly id: string;
  readonly account: string;
  /** Never changes. */
  readonly amount: MicroUsd;
  readonly parent: string | null;
  /** The number of locks above it; 0 without a parent. */
  readonly depth: number;
  readonly lendable: MicroUsd;
  /**
   * The part of `lendable` that the locks under it hold or were charged. It does not change after the lock is resolved.
   */
  readonly lent: MicroUsd;
  /** The lock belongs to a task, so it outlives its call and its process, until its `expiresAt`. */
  readonly isKept: boolean;
  readonly prices: readonly string[];
  /** Ids of the budgets that count it. */
  readonly budgets: readonly string[];
  readonly state: LockState;
  readonly price: string | null;
  readonly provider: string | null;
  /**
   * Basis points that the fee was computed with. null before the settlement, and for old settlements, which did not
   * store it.
   */
  readonly feeBps: number | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly resolvedAt: number | null;
  readonly lockDetail: string;
  readonly usage: string | null;
  readonly detail: string | null;
}

/**
 * The double-entry ledger. Concurrent operations are committed in groups, and a promise resolves when its group is
 * durable. Refusals are results, never exceptions. LedgerUnavailable means that the database could not be reached: the
 * operation either has no effect, or has happened and can be found by its id.
 */
export interface Ledger {
  lock(request: LockRequest): Promise<LockResult>;
  settle(request: SettleRequest): Promise<SettleResult>;
  release(request: ReleaseRequest): Promise<ReleaseResult>;
  /** Moves money between two accounts. Only `treasury:*` may go below 0. */
  transfer(request: TransferRequest): Promise<TransferResult>;
  /**
   * Marks a held lock as one that belongs to a task, and moves its `expiresAt` to `until` (epoch milliseconds) unless
   * it is later already.
   */
  keep(id: string, until: number): Promise<KeepResult>;
  /**
   * Expires the held locks whose `expiresAt` is at or before `now`, at most `limit` of them. With `spare: 'kept'` it
   * leaves out the kept ones. Resolves with the ids of the expired locks.
   */
  expire(now: number, limit?: number, spare?: 'kept'): Promise<readonly string[]>;
  /** null if the account has never had an entry. */
  balance(account: AccountName): Promise<Balance | null>;
  /**
   * Whether an account has 0.10 USD, or once received or gave as much in one transfer. A transfer counts once it is in
   * the tables, which a log may keep back for a time (`ledger.flush`).
   */
  isFunded(account: AccountName): Promise<boolean>;
  find(id: string): Promise<LockRecord | null>;
  /** The locks directly under a lock, in the order of their creation, at most `limit` (default 1,000). */
  children(id: string, limit?: number): Promise<readonly LockRecord[]>;
  /** The money that a budget counts as spent and locked; zeros if it was never used. */
  budget(id: string): Promise<BudgetUse>;
  /** The sum, in micro-USD, that all budgets `<name>:<period>` of one name count as spent. */
  spentOf(name: string): Promise<MicroUsd>;
  /**
   * Rejects while every operation would be refused: with DatabaseError (code LOST if the database lacks operations that
   * were acknowledged), or with LedgerUnavailable after the ledger has given up its log. If the last
   * operations could not be written, it writes something of their kind and takes it back.
   */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** The database could not be reached, or did not answer in time. The operation may still have happened, see Ledger. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

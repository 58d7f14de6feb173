import type { MicroUsd } from './money.ts';

/**
 * The ledger's accounts are names: `escrow:<account>` (a consumer; the only kind with a locked part) ·
 * `earnings:<provider>` · `fees` · `suspense` · `treasury:<chain>` (what stands behind the rest; the only kind
 * whose balance may be negative, as it mirrors money held elsewhere).
 */
export type AccountName = string;

export const escrowOf = (account: string): AccountName => `escrow:${account}`;
export const earningsOf = (provider: string): AccountName => `earnings:${provider}`;
export const FEES: AccountName = 'fees';
export const SUSPENSE: AccountName = 'suspense';
const TREASURY = 'treasury:';
export const treasuryOf = (chain: string): AccountName => `${TREASURY}${chain}`;
export const mayBeNegative = (account: AccountName): boolean => account.startsWith(TREASURY);
/** The operator, where an account is named: it has no escrow, but fees and money of its own. */
export const OPERATOR = 'tollgate:operator';
/** Money of the operator's own: below 0 by the credit that he gave, above by what he has put on chains. */
export const OPERATOR_TREASURY: AccountName = treasuryOf('operator');

export interface Balance {
  readonly available: MicroUsd;
  readonly locked: MicroUsd;
}

/**
 * A spending limit that is enforced together with the balance: spent + locked + amount must stay within `limit`.
 * `id` names who spends, and the reset period: it has neither spaces nor quotes.
 */
export interface Budget {
  readonly id: string;
  readonly limit: MicroUsd;
  /** Counts besides what the counter `id` has: calls of the period that counted elsewhere, see CarriedSum. */
  readonly carried?: BudgetUse;
}

export interface LockRequest {
  /** Call id = lock id = generation id. */
  readonly id: string;
  /** The consumer's account, without the `escrow:` prefix. */
  readonly account: string;
  readonly amount: MicroUsd;
  /** The price versions that this lock was computed from; settlement can use no other. */
  readonly prices: readonly string[];
  /** Epoch milliseconds after which the lock may be expired. */
  readonly expiresAt: number;
  /**
   * All have to have room, each counts the whole lock, and no two have one id. Ignored for a lock with a parent: its
   * money counts against the parent's budgets already.
   */
  readonly budgets?: readonly Budget[];
  /** The call has run already: its lock is tried for as long as its end. Default false. */
  readonly workDone?: boolean;
  /**
   * The part of `amount` that locks made under this one may draw, and that its own settlement cannot charge. 0 when
   * left out.
   */
  readonly lendable?: MicroUsd;
  /** Id of the held lock of the same account that the money comes from, instead of the available balance. */
  readonly parent?: string;
  /** Opaque JSON text of the caller (what was called, by which key), kept on the generation. */
  readonly detail: string;
}

/** Adds what is carried to a budget to what its counter has. */
export const withCarried = ({ spent, locked }: BudgetUse, carried: BudgetUse = NOTHING_USED): BudgetUse => ({
  spent: spent + carried.spent,
  locked: locked + carried.locked,
});

const NOTHING_USED: BudgetUse = { spent: 0n, locked: 0n };

/** How many locks deep money may be drawn: a lock without a parent is the first. */
export const LOCK_LEVELS = 8;

type LockRefusal =
  | 'insufficient'
  | 'no_account'
  | 'budget_exceeded'
  | 'duplicate'
  /** The parent is resolved, unknown or another account's. */
  | 'parent_over'
  /** The parent has less left to lend than `amount`. */
  | 'parent_exhausted'
  /** The parent is the last of LOCK_LEVELS. */
  | 'too_deep';

/**
 * `available` is the account's, after the lock; where the parent was the reason of a refusal it is what the parent
 * still has to lend (0 when it is over).
 */
export type LockResult =
  | { readonly ok: true; readonly available: MicroUsd }
  | { readonly ok: false; readonly reason: Exclude<LockRefusal, 'budget_exceeded'>; readonly available: MicroUsd }
  | {
      readonly ok: false;
      readonly reason: 'budget_exceeded';
      readonly available: MicroUsd;
      /** The first that has no room for the lock. What is carried is in its figures. */
      readonly budget: Pick<Budget, 'id' | 'limit'> & BudgetUse;
    };

/** The money that a budget has counted. */
export interface BudgetUse {
  readonly spent: MicroUsd;
  readonly locked: MicroUsd;
}

export interface SettleRequest {
  readonly id: string;
  /** One of the lock's price versions. */
  readonly price: string;
  /** The provider that is paid, without the `earnings:` prefix. */
  readonly provider: string;
  /**
   * The cost of the call. Above the lock without its lendable part it is cut to that, plus what is available when
   * `draw` is set and the lock has no parent.
   */
  readonly charge: MicroUsd;
  readonly draw: boolean;
  /** Operator fee in basis points of what is charged: see feeOf for how it is rounded. */
  readonly feeBps: number;
  /** Opaque JSON texts kept on the generation: metered usage, and how the call went. */
  readonly usage: string;
  readonly detail: string;
}

export interface Settlement {
  readonly charged: MicroUsd;
  readonly fee: MicroUsd;
  /** Part of `charged` that exceeded the lock and was drawn from the available balance. */
  readonly drawn: MicroUsd;
  /** The part of the cost that could not be charged. */
  readonly shortfall: MicroUsd;
}

export type SettleResult =
  | ({ readonly ok: true } & Settlement)
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' | 'wrong_price' };

export interface ReleaseRequest {
  readonly id: string;
  readonly detail: string;
}

export type ReleaseResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' };

export interface TransferRequest {
  /** Unique over all transfers for ever: repeating it is a `duplicate`, not a second movement. */
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
}

export type KeepResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' };

export type TransferResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'insufficient' | 'duplicate'; readonly available: MicroUsd };

export type LockState = 'held' | 'settled' | 'released' | 'expired';

/**
 * A lock with its resolution: the money side of a generation. While it is held it holds `amount - lent`; what of
 * that was not charged when it was resolved went back to its parent if that was held then, else to the available
 * balance.
 */
export interface LockRecord extends Settlement {
  readonly id: string;
  readonly account: string;
  /** Never changes. */
  readonly amount: MicroUsd;
  readonly parent: string | null;
  /** Locks above it: 0 without a parent. */
  readonly depth: number;
  readonly lendable: MicroUsd;
  /** Of `lendable`: what the locks made under it hold or were charged. Stands still once the lock is resolved. */
  readonly lent: MicroUsd;
  /** It lives with a task: it outlasts its call and the process that made it, until its `expiresAt`. */
  readonly kept: boolean;
  readonly prices: readonly string[];
  /** Ids of the budgets that it counts in. */
  readonly budgets: readonly string[];
  readonly state: LockState;
  readonly price: string | null;
  readonly provider: string | null;
  /**
   * Basis points that the fee was computed with; null before the settlement, and where it was settled before this
   * was kept.
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
 * The double-entry ledger. Concurrent operations are committed in groups; a promise resolves when its group is
 * durable. Refusals are results, never exceptions; an exception (LedgerUnavailable) means that the database could
 * not be reached and that the operation has no effect, or will be found by its id.
 */
export interface Ledger {
  lock(request: LockRequest): Promise<LockResult>;
  settle(request: SettleRequest): Promise<SettleResult>;
  release(request: ReleaseRequest): Promise<ReleaseResult>;
  /** Moves money between two accounts. Only `treasury:*` may go below 0. */
  transfer(request: TransferRequest): Promise<TransferResult>;
  /**
   * Marks a held lock as one that lives with a task, and moves its `expiresAt` to `until` (epoch milliseconds)
   * unless that is later already.
   */
  keep(id: string, until: number): Promise<KeepResult>;
  /**
   * Gives back every held lock whose `expiresAt` is at or before `now` (at most `limit`), with `spare: 'kept'` only
   * those that are not kept; returns their ids.
   */
  expire(now: number, limit?: number, spare?: 'kept'): Promise<readonly string[]>;
  /** null when the account has never had an entry. */
  balance(account: AccountName): Promise<Balance | null>;
  find(id: string): Promise<LockRecord | null>;
  /** The locks made directly under a lock, in the order of their creation; at most `limit` (default 1,000). */
  children(id: string, limit?: number): Promise<readonly LockRecord[]>;
  /** Spent and locked of a budget; zeros when it was never used. */
  budget(id: string): Promise<BudgetUse>;
  /** Micro-USD that all budgets `<name>:<period>` of one name have counted as spent. */
  spentOf(name: string): Promise<MicroUsd>;
  close(): Promise<void>;
}

/** The database cannot be reached, or did not answer in time. Nothing was decided; retry later. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

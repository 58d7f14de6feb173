import type { MicroUsd } from './money.ts';

/**
 * The ledger's accounts are names:
 * `escrow:<account>` (a consumer; the only kind with a locked part) · `earnings:<provider>` · `fees` · `suspense` ·
 * `treasury:<chain>` (what stands behind the rest; the only kind whose balance may be negative, as it mirrors money held elsewhere).
 */
export type AccountName = string;

export const escrowOf = (account: string): AccountName => `escrow:${account}`;
export const earningsOf = (provider: string): AccountName => `earnings:${provider}`;
export const FEES: AccountName = 'fees';
export const treasuryOf = (chain: string): AccountName => `treasury:${chain}`;

export interface Balance {
  readonly available: MicroUsd;
  readonly locked: MicroUsd;
}

/** A spending limit that is enforced together with the balance: spent + locked + amount must stay within `limit`. `id` names one key in one reset period. */
export interface Budget {
  readonly id: string;
  readonly limit: MicroUsd;
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
  readonly budget?: Budget;
  /** Opaque JSON text of the caller (what was called, by which key), kept on the generation. */
  readonly detail: string;
}

export type LockResult =
  | { readonly ok: true; readonly available: MicroUsd }
  | { readonly ok: false; readonly reason: 'insufficient' | 'no_account' | 'budget_exceeded' | 'duplicate'; readonly available: MicroUsd };

export interface SettleRequest {
  readonly id: string;
  /** One of the lock's price versions. */
  readonly price: string;
  /** The provider that is paid, without the `earnings:` prefix. */
  readonly provider: string;
  /** What the call costs. Above the lock it is cut to the lock, plus what is available when `draw` is set. */
  readonly charge: MicroUsd;
  readonly draw: boolean;
  /** Operator fee in basis points of what is charged; the fee is rounded down. */
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
  /** What the call cost beyond what could be charged. */
  readonly shortfall: MicroUsd;
}

export type SettleResult =
  | ({ readonly ok: true } & Settlement)
  | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' | 'wrong_price' };

export interface ReleaseRequest {
  readonly id: string;
  readonly detail: string;
}

export type ReleaseResult = { readonly ok: true } | { readonly ok: false; readonly reason: 'not_found' | 'already_resolved' };

export interface TransferRequest {
  /** Unique over all transfers for ever: repeating it is a `duplicate`, not a second movement. */
  readonly id: string;
  readonly from: AccountName;
  readonly to: AccountName;
  readonly amount: MicroUsd;
  readonly memo: string;
}

export type TransferResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'insufficient' | 'duplicate'; readonly available: MicroUsd };

export type LockState = 'held' | 'settled' | 'released' | 'expired';

/** A lock with its resolution: the money side of a generation. */
export interface LockRecord extends Settlement {
  readonly id: string;
  readonly account: string;
  readonly amount: MicroUsd;
  readonly prices: readonly string[];
  readonly budget: string | null;
  readonly state: LockState;
  readonly price: string | null;
  readonly provider: string | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly resolvedAt: number | null;
  readonly lockDetail: string;
  readonly usage: string | null;
  readonly detail: string | null;
}

/**
 * The double-entry ledger. Concurrent operations are committed in groups; a promise resolves when its group is durable.
 * Refusals are results, never exceptions; an exception (LedgerUnavailable) means that the database could not be reached
 * and that the operation has no effect, or will be found by its id.
 */
export interface Ledger {
  lock(request: LockRequest): Promise<LockResult>;
  settle(request: SettleRequest): Promise<SettleResult>;
  release(request: ReleaseRequest): Promise<ReleaseResult>;
  /** Moves money between two accounts. Only `treasury:*` may go below 0. */
  transfer(request: TransferRequest): Promise<TransferResult>;
  /** Gives back every held lock whose `expiresAt` is at or before `now` (at most `limit`); returns their ids. */
  expire(now: number, limit?: number): Promise<readonly string[]>;
  /** null when the account has never had an entry. */
  balance(account: AccountName): Promise<Balance | null>;
  find(id: string): Promise<LockRecord | null>;
  /** Spent and locked of a budget; zeros when it was never used. */
  budget(id: string): Promise<{ readonly spent: MicroUsd; readonly locked: MicroUsd }>;
  close(): Promise<void>;
}

/** The database cannot be reached, or did not answer in time. Nothing was decided; retry later. */
export class LedgerUnavailable extends Error {
  override readonly name = 'LedgerUnavailable';
}

import { hash } from 'node:crypto';
import type {
  KeepResult,
  LockRequest,
  LockResult,
  ReleaseRequest,
  ReleaseResult,
  SettleRequest,
  SettleResult,
  TransferRequest,
  TransferResult,
} from './ledger.ts';
import { MICRO_USD_MAX, type MicroUsd } from '../prices/money.ts';

/** Expires a lock whose `expiresAt` is at or before `at` (epoch milliseconds). With `spareKept`, a kept lock stays. */
export interface ExpireRequest {
  readonly id: string;
  /** The account of the lock. With it, a lock and its parent that expire together are in one group, in their order. */
  readonly account: string;
  readonly at: number;
  readonly spareKept: boolean;
}

/** Keeps a held lock for a task, at least until `until` (epoch milliseconds). */
export interface KeepRequest {
  readonly id: string;
  readonly until: number;
}

/**
 * Every change of the ledger is one of these operations. Concurrent operations are decided in their order of arrival
 * and committed as one batch.
 */
export type LedgerOperation =
  | { readonly kind: 'lock'; readonly request: LockRequest }
  | { readonly kind: 'settle'; readonly request: SettleRequest }
  | { readonly kind: 'release'; readonly request: ReleaseRequest }
  | { readonly kind: 'expire'; readonly request: ExpireRequest }
  | { readonly kind: 'keep'; readonly request: KeepRequest }
  | { readonly kind: 'transfer'; readonly request: TransferRequest };

export type OperationResult = LockResult | SettleResult | ReleaseResult | KeepResult | TransferResult;

/** The result with the time of its record, which the books have: later decisions may have moved it. */
export const resolvedAt = (at: number, result: OperationResult): OperationResult =>
  'resolvedAt' in result && result.resolvedAt !== at ? { ...result, resolvedAt: at } : result;

const BPS = 10_000;
const BPS_WHOLE = BigInt(BPS);

/**
 * Throws RangeError for a request that only a program error can make: an amount out of range, a time that is not whole
 * milliseconds, a transfer to itself, a fee above 100 %, more lendable than locked.
 */
export function checkOperation({ kind, request }: LedgerOperation): void {
  if (request.id === '') throw new RangeError(`${kind} needs an id`);
  if (kind === 'lock') {
    const { id, amount, expiresAt, lendable, budgets } = request;
    checkAmount(kind, amount, 0n);
    if (!Number.isSafeInteger(expiresAt))
      throw new RangeError(`lock ${id} expires at ${expiresAt}; it must be whole epoch milliseconds`);
    if (lendable !== undefined && (lendable < 0n || lendable > amount))
      throw new RangeError(`lock ${id} has ${lendable} micro-USD lendable; it must be from 0 to its amount, ${amount}`);
    for (const budget of budgets ?? []) {
      if (!BUDGET_ID.test(budget.id))
        throw new RangeError(`lock ${id} has the budget "${budget.id}"; its id must have no spaces and no quotes`);
    }
  } else if (kind === 'transfer') {
    checkAmount(kind, request.amount, 1n);
    if (request.from === request.to)
      throw new RangeError(`transfer ${request.id} moves money from ${request.from} to itself`);
  } else if (kind === 'settle') {
    if (request.charge < 0n) throw new RangeError(`settle ${request.id} has a negative charge`);
    if (!Number.isInteger(request.feeBps) || request.feeBps < 0 || request.feeBps > BPS)
      throw new RangeError(
        `settle ${request.id} has a fee of ${request.feeBps} basis points; it must be an integer from 0 to ${BPS}`,
      );
  } else if (kind === 'keep' && !Number.isSafeInteger(request.until))
    throw new RangeError(`keep ${request.id} is until ${request.until}; it must be whole epoch milliseconds`);
}

/** The ids of a lock's budgets are stored as one text, separated by spaces. */
const BUDGET_ID = /^[^\s"\\]+$/;

function checkAmount(kind: string, amount: MicroUsd, least: MicroUsd): void {
  if (amount < least || amount > MICRO_USD_MAX)
    throw new RangeError(`${kind} of ${amount} micro-USD: it must be from ${least} to ${MICRO_USD_MAX}`);
}

/**
 * The operator's part of a charge, in whole micro-USD. A fraction is rounded up or down by the hash of the lock's id.
 * The probability of rounding up is the fraction, so even calls of a few micro-USD pay the exact fee on average.
 * Neither consumer nor provider chooses the id, and anybody can recompute the fee.
 */
export function feeOf(charged: MicroUsd, feeBps: number, id: string): MicroUsd {
  const exact = charged * BigInt(feeBps);
  const fee = exact / BPS_WHOLE;
  const rest = exact % BPS_WHOLE;
  if (rest === 0n) return fee;
  return BigInt(Number.parseInt(hash('sha256', id).slice(0, 8), 16) % BPS) < rest ? fee + 1n : fee;
}

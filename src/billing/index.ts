/** The ledger and its records. What needs no database stands in `#billing/amounts`. */

export {
  type AccountTotals,
  type FoundLocks,
  type LocksQuery,
  type TransferRecord,
  earningsTotals,
  findTransfer,
} from './ledger/account-records.ts';
export { type RegisteredArchive, archivedUntil, registeredArchives } from './archive/registered.ts';
export { type ArchivedCallPlace, findArchivedCall } from './archive/find-archived-call.ts';
export type { LockResolution } from './bill.ts';
export type { SettlePendingCall } from './settle-call.ts';
export { type CarriedSum, type CarryingBudget, readCarriedSum } from './archive/carried-sum.ts';
export { LOST } from './ledger/group-commit.ts';
export {
  type AccountName,
  type Budget,
  type BudgetUse,
  FEES,
  type Ledger,
  LedgerUnavailable,
  type LockRecord,
  type LockRequest,
  OPERATOR,
  OPERATOR_TREASURY,
  SUSPENSE,
  earningsOf,
  escrowOf,
  mayBeNegative,
  treasuryOf,
  withCarried,
} from './ledger/ledger.ts';
export type { Payout, Payouts } from './payouts.ts';
export { JUMP, jumpsBetween, leastRates, ratesAbove } from './prices/price-jumps.ts';
export type { PriceBook, PriceVersion } from './prices/price-book.ts';
export { type Receipt, type ReceiptSigner, tagsOfLock } from './receipt.ts';
export type { Refund, Refunds } from './refunds.ts';

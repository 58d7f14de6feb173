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
export { type AuditReport, audit } from './audit/audit.ts';
export type { LockResolution } from './bill.ts';
export type { EndFrame, Frame, ReplyPiece, SettledFrame } from './frames.ts';
export type { SettlePendingCall } from './settle-call.ts';
export { type CancelSignal, CancelSource } from './cancel-signal.ts';
export { type CarriedSum, type CarryingBudget, readCarriedSum } from './archive/carried-sum.ts';
export { LOST } from './ledger/group-commit.ts';
export { journalHead } from './ledger/journal.ts';
export { createLedger } from './ledger/ledger-create.ts';
export { EMBEDDED_CHAIN } from './ledger/ledger-sqlite.ts';
export {
  type AccountName,
  type Balance,
  type Budget,
  type BudgetUse,
  FEES,
  type Ledger,
  LedgerUnavailable,
  type LockRecord,
  type LockRequest,
  type LockResult,
  OPERATOR,
  OPERATOR_TREASURY,
  SUSPENSE,
  type Settlement,
  earningsOf,
  escrowOf,
  mayBeNegative,
  treasuryOf,
  withCarried,
} from './ledger/ledger.ts';
export {
  MICRO_PER_USD,
  MICRO_USD_MAX,
  type MicroUsd,
  MoneyError,
  formatUsd,
  parseUsd,
  toUsdNumber,
} from './prices/money.ts';
export type { Payout, Payouts } from './payouts.ts';
export type { PriceBook, PriceVersion } from './prices/price-book.ts';
export { METERS, type Meter, rateOf, TOKEN_PARTS } from './prices/meters.ts';
export { JUMP, jumpsBetween, leastRates, ratesAbove } from './prices/price-jumps.ts';
export {
  parseRates,
  perMinute,
  ratesFromJson,
  ratesToJson,
  ratesToUsd,
  unitUsd,
  usageToText,
} from './prices/price-text.ts';
export {
  BATCH_TIER,
  DEFAULT_TIER,
  type Price,
  type Rates,
  type ServiceTiers,
  type Usage,
  completionTokens,
  cost,
  costAtMost,
  offerId,
  partsOfOffer,
  priceId,
  promptTokens,
} from './prices/price.ts';
export type { Receipt, ReceiptSigner } from './receipt.ts';
export type { Refund, Refunds } from './refunds.ts';

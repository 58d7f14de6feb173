export {
  findLocks,
  type FoundLocks,
  type LockPlace,
  type LocksQuery,
  accountTotals,
  type AccountTotals,
  countHeldLocks,
  earningsTotals,
  findTransfer,
  listMovements,
  type TransferRecord,
} from './account-records.ts';
export { audit, type AuditCheck, type AuditOptions, type AuditReport } from './audit.ts';
export {
  type Billable,
  type BilledHandler,
  createBill,
  type EndFrame,
  type Frame,
  type Resolution,
  type SettledFrame,
  type SettlePendingCall,
  createSettlePendingCall,
} from './bill.ts';
export { type CarriedSum, type CarryingBudget, readCarriedSum } from './carried-sum.ts';
export type { CancelSignal } from './cancel-signal.ts';
export { expireAll, expireOrphans, createLedger } from './ledger-create.ts';
export { compareJournal, hasOldBooks, journalHead, type JournalHead } from './journal.ts';
export type { LedgerBatch } from './group-commit.ts';
export { EMBEDDED_CHAIN } from './ledger-sqlite.ts';
export {
  type AccountName,
  type Balance,
  type Budget,
  type BudgetUse,
  earningsOf,
  escrowOf,
  FEES,
  type Ledger,
  LedgerUnavailable,
  type LockRecord,
  type LockResult,
  type LockState,
  mayBeNegative,
  OPERATOR,
  OPERATOR_TREASURY,
  type Settlement,
  SUSPENSE,
  treasuryOf,
  withCarried,
} from './ledger.ts';
export { formatUsd, MICRO_PER_USD, MICRO_USD_MAX, type MicroUsd, MoneyError, parseUsd, toUsdNumber } from './money.ts';
export {
  offerId,
  partsOfOffer,
  cost,
  costAtMost,
  maxPromptRate,
  isPriced,
  type Meter,
  METERS,
  parseRates,
  type Price,
  priceId,
  promptTokens,
  rateOf,
  type Rates,
  ratesFromJson,
  ratesToJson,
  ratesToUsd,
  unitUsd,
  type Usage,
  usageToText,
  JUMP,
  jumpedMeters,
  ratesAbove,
} from './price.ts';
export { createPayouts, type Payout, type Payouts } from './payouts.ts';
export { createPriceBook, type PriceBook, type PriceVersion } from './price-book.ts';
export { createReceiptSigner, type Receipt, type ReceiptSigner } from './receipt.ts';

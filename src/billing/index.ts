export * from './money.ts';
export * from './price.ts';
export * from './ledger.ts';
export {
  createBill,
  type Billable,
  type BilledHandler,
  type BillOptions,
  type DataFrame,
  type EndFrame,
  type Frame,
  type HeadFrame,
  type Quote,
  type Resolution,
  type SettledFrame,
} from './bill.ts';
export { createConclude, type Conclude, type Concluded, type Conclusion } from './conclude.ts';
export { createLedger } from './ledger-create.ts';
export type { LedgerBatch } from './ledger-engine.ts';
export { compareJournal, journalHead, type JournalHead, type JournalState } from './journal-head.ts';
export { EMBEDDED_CHAIN } from './ledger-sqlite.ts';
export { createPriceBook, type PriceBook, type PriceVersion } from './price-book.ts';
export {
  accountTotals,
  countHeldLocks,
  earningsTotals,
  findTransfer,
  type AccountTotals,
  type EarningsTotals,
  type TransferRecord,
} from './account-totals.ts';
export { findLocks, type FoundLocks, type LockPlace, type LocksAsked } from './account-locks.ts';
export { audit, type AuditCheck, type AuditOptions, type AuditReport, type AuditTotals } from './audit.ts';
export { createReceiptSigner, type Jwk, type Receipt, type ReceiptSigner } from './receipt.ts';
export { expireAll, expireOrphans } from './expire-all.ts';
export * from './chain/chain.ts';
export type { ChainPolicy, Chains, ChainsOptions } from './chain/chains.ts';
export type { ChainBook, OpenMoney } from './chain/chain-rows.ts';
export { LOSSES } from './chain/deposits.ts';
export type { Deposit, DepositState } from './chain/deposit-rows.ts';
export type { Reserves } from './chain/treasury.ts';
export type { BoundWallet, Wallets } from './chain/wallets.ts';
export type { Withdrawal, WithdrawalState } from './chain/withdrawal-rows.ts';
export { CANCELED } from './chain/withdrawals.ts';
export { WithdrawalProblem } from './chain/withdrawal-problem.ts';
export { loadChains } from './chain/load-chains.ts';

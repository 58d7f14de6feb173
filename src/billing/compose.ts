/** Makes the ledger, the billing middleware and the audit, for `src/program`. Other modules use `#billing`. */

export {
  accountTotals,
  countHeldLocks,
  findLocks,
  listLocksOfProvider,
  listMovements,
} from './ledger/account-records.ts';
export { type AuditOptions, type AuditReport, audit } from './audit/audit.ts';
export { type BilledHandler, createBill } from './bill.ts';
export { createGiveBack } from './give-back.ts';
export { createSettlePendingCall } from './settle-call.ts';
export type { LedgerBatch } from './ledger/group-commit.ts';
export { compareJournal, hasOldBooks, journalHead } from './ledger/journal.ts';
export { type JournalWatch, type RememberedHead, lossOf, watchJournal } from './ledger/journal-watch.ts';
export { createLedger, expireAll, expireOrphans } from './ledger/ledger-create.ts';
export { EMBEDDED_CHAIN } from './ledger/ledger-sqlite.ts';
export { createPayouts } from './payouts.ts';
export { createRefunds } from './refunds.ts';
export { createPriceBook } from './prices/price-book.ts';
export { createReceiptSigner } from './receipt.ts';

/** The parts that `src/program/app` makes the ledger and the billing middleware of. Other modules use `#billing`. */

export { accountTotals, countHeldLocks, findLocks, listMovements } from './account-records.ts';
export { type AuditCheck, type AuditOptions, audit } from './audit.ts';
export { type BilledHandler, createBill } from './bill.ts';
export { createSettlePendingCall } from './settle-call.ts';
export type { LedgerBatch } from './group-commit.ts';
export { type JournalHead, compareJournal, hasOldBooks, journalHead } from './journal.ts';
export { createLedger, expireAll, expireOrphans } from './ledger-create.ts';
export { EMBEDDED_CHAIN } from './ledger-sqlite.ts';
export { createPayouts } from './payouts.ts';
export { createPriceBook } from './price-book.ts';
export { createReceiptSigner } from './receipt.ts';

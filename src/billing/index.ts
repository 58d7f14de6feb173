export * from './money.ts';
export * from './price.ts';
export * from './ledger.ts';
export * from './bill.ts';
export { createLedger } from './ledger-create.ts';
export { createPriceBook, type PriceBook, type PriceVersion } from './price-book.ts';
export { accountTotals, findTransfer, type AccountTotals, type TransferRecord } from './account-totals.ts';
export { audit, type AuditCheck, type AuditOptions, type AuditReport, type AuditTotals } from './audit.ts';
export { createReceiptSigner, type Jwk, type Receipt, type ReceiptSigner } from './receipt.ts';

/** Payments that arrive on chains. Apart from `#payments`, so that the pipeline does not load the chains. */

export { type AuditedChain, type ChainAudit, auditFunds } from './chain-audit.ts';
export { PaymentsSetupError, createPayments } from './create-payments.ts';
export { type ChainTerms, type Funds, hideWithoutFunds, requireFunds, termsOf, withFunds } from './funds.ts';
export { createMemoAccounts } from './memo-account.ts';

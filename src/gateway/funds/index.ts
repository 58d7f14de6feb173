export { adminFundsRoutes, type AdminFundsDeps } from './admin-funds-routes.ts';
export { auditFunds, type AuditedChain, type ChainAudit } from './chain-audit.ts';
export { fundsRoutes, type FundsDeps } from './funds-routes.ts';
export type { ChainTerms, Funds } from './funds.ts';
export { PaymentsSetupError } from './payments-setup-error.ts';

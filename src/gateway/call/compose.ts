/** The parts that `src/program/app` makes a pipeline of. Protocols use `#call`. */

export { type BillingOptions, createBilling } from './billing.ts';
export { createClaimDensity } from './claim-density.ts';
export { createRetryBudget } from './retry-budget.ts';
export { callGraceMs } from './call.ts';
export { createExecute } from './execute.ts';
export { createFree } from './free-calls.ts';
export { createHeldCalls } from './held-calls.ts';
export { createIdempotency } from './idempotency.ts';
export { type LockPayments, createLockPayments, createUnfundedNetwork, payersWithBudgets } from './lock-payments.ts';
export { createPipeline, lockOf, longestLockMs } from './pipeline.ts';
export { quoteCall } from './quote-call.ts';
export { createQuotes } from './quotes.ts';
export { type Arrivals, createArrivals } from './routing/arrivals.ts';
export { type Router, createRouter } from './routing/router.ts';
export { RunningCalls } from './running-calls.ts';
export { createRuns } from './runs.ts';

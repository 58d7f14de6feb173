/** The parts that `src/program/app` makes a pipeline of. Protocols use `#call`. */

export { createClaimDensity } from './claim-density.ts';
export { createRetryBudget } from './retry-budget.ts';
export { type Candidate, callGraceMs } from './call.ts';
export { createExecute } from './execute.ts';
export { createFree } from './free-calls.ts';
export { createIdempotency } from './idempotency.ts';
export { createLockPayments, mostOf } from './lock-payments.ts';
export { ownKeyService } from './own-keys.ts';
export { createPipeline, lockOf, longestLockMs, pricesOf } from './pipeline.ts';
export { createResume } from './prepare.ts';
export { quoteCall } from './quote-call.ts';
export { createQuotes } from './quotes.ts';
export { createArrivals } from './routing/arrivals.ts';
export { createRouter, releaseProbes } from './routing/router.ts';
export { RunningCalls } from './running-calls.ts';
export { createRuns } from './runs.ts';

export {
  type Admission,
  type CallerRatesOptions,
  type OnRefused,
  type RatePolicies,
  createCallerRates,
  createRatePolicies,
  limitedAs,
  rateHeaders,
  sharedAs,
} from './caller-rates.ts';
export { type EventTurns, createEventTurns } from './event-turns.ts';
export { type RateLimiter, UNLIMITED, spendTokens } from './rate-limiter.ts';
export { createRateLimiter } from './redis-limiter.ts';
export {
  LISTEN_MS,
  OVER,
  type StreamQuota,
  type StreamSlot,
  createCounter,
  createStreamQuota,
  createStreamShares,
  type StreamShares,
} from './stream-quota.ts';

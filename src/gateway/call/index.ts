export { type Call, type CallObserver, type CallRequest, isReadOn, newCallId, READ_ON } from './call.ts';
export { MAX_COST_HEADER, MAX_COST_META, capCost, lowestCap, refuseCapBeside } from './cost-cap.ts';
export type { CostCap } from './call.ts';
export { type FreeCall, runFree } from './free-calls.ts';
export {
  type UnpaidCall,
  type RepeatKey,
  type ResponseRecord,
  type StartedCall,
  type StartedProviderCall,
  type TakenKey,
  handlePaidRequest,
  type PaidRequestDeps,
  openCall,
} from './handle-paid-request.ts';
export { chargeOfCut } from './endings.ts';
export type { AnsweredRequest, HeldCalls } from './held-calls.ts';
export {
  type GivenReply,
  type Idempotency,
  KEPT_BYTES_MAX,
  createKeptBytes,
  idempotencyError,
  parseIdempotencyKey,
} from './idempotency.ts';
export {
  type PaidAnswer,
  type PaidContext,
  type PaidRoute,
  type PaidRouteDeps,
  type Payer,
  addPaidRoute,
  bodyFrom,
  costOf,
  spentOn,
  onceSettled,
  payerOf,
  takeBytes,
  wantsReceipt,
} from './paid-route.ts';
export { answerUndelivered, cutReply, errorOfCut, undeliveredEnd } from './undelivered.ts';
export type { Pipeline } from './pipeline.ts';
export { authorise } from './prepare.ts';
export { type ReplyReader, type RequestAdapter, endOnly, measuredUse, singleRequest } from './single-request.ts';
export { type Cut, type GeneratedAdapter, type ProviderAdapter, type ReplyEnd } from './call.ts';
export { type Quotable, type QuoteView, quoteSchema } from './quote-call.ts';
export { QUOTE_HEADER, type Quotes, requestedQuote } from './quotes.ts';
export type { RequestedQuote } from './call.ts';
export { type ReplyHold, createReplyMemory } from './reply-memory.ts';
export {
  type MeasuredWork,
  ONE_CALL,
  type ReportedUsage,
  clampReportedUsage,
  readReportedUsage,
} from './reported-usage.ts';
export {
  NO_PREFERENCES,
  type ProviderPreferences,
  requestedModels,
  requestedSession,
  routingFields,
  toPreferences,
  withModel,
} from './preferences.ts';
export type { Run, Runs } from './runs.ts';
export {
  CALL_OVER,
  type Send,
  type Upstream,
  type UpstreamExchange,
  type UpstreamReply,
  type UpstreamRequest,
  bodyBytes,
} from './upstream.ts';

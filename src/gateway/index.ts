export { ACCOUNT_HEADER, letAct, type MemberRole, nobodyActs, ownPartOf, roleToAct } from './acting.ts';
export { anonymousAt, hasCredentials, needsCredential } from './anonymous.ts';
export { callGraceMs } from './call-grace.ts';
export type { CallRequest } from './call-request.ts';
export {
  ANONYMOUS_ACCOUNT,
  type Call,
  type Caller,
  type Candidate,
  type ProviderAdapter,
  type Cut,
  type DirectEndpoint,
  type RequestAdapter,
  isDevelopment,
  measuredUse,
  type Offer,
  OWN_ACCOUNT,
  type Provider,
  PROVIDER_FLAGS,
  type ProviderFlag,
  type ReplyEnd,
  type ReplyReader,
  type Send,
  type ProviderStream,
  type TunnelEndpoint,
  type UpstreamRequest,
} from './call.ts';
export { capCost, type CostCap, lowestCap, MAX_COST_HEADER, MAX_COST_META, refuseCapBeside } from './cap-cost.ts';
export { type Catalog, createCatalog, type Resolved } from './catalog/catalog.ts';
export { withFirstSeen } from './catalog/first-seen.ts';
export { LATELY_MS } from './catalog/lately-served.ts';
export {
  byService,
  compare,
  descriptionOf,
  listedServices,
  type Listing,
  listingsOf,
  primitivesOf,
} from './catalog/listings.ts';
export { nearestHint, nearestNames } from './catalog/nearest-names.ts';
export { offersFromConfig, pinned, toOffer } from './catalog/offers.ts';
export { createOffersById } from './catalog/offers-by-id.ts';
export {
  type ImagePrice,
  type ModelPrice,
  type PriceView,
  type RaiseView,
  type VideoPrice,
  viewImagePrice,
  viewModelPrice,
  viewPrice,
  viewRaise,
  viewVideoPrice,
} from './catalog/price-view.ts';
export { resolveAny } from './catalog/resolve-any.ts';
export {
  flagsSchema,
  offerStatus,
  type OfferStatus,
  raisedSchema,
  healthProperties,
  type HealthSources,
  type HealthView,
  statusSchema,
  viewHealth,
} from './catalog/health-view.ts';
export { createFreshPage, hasTagged, sendPage, type TaggedPage, tagOf, tagPage } from './server/tagged-page.ts';
export {
  type DefinitionView,
  type ListedTool,
  type ToolDefinition,
  type ToolListings,
  viewDefinition,
} from './catalog/tool-listings.ts';
export { createToolPins, type ToolPin, type ToolPins } from './catalog/tool-pins.ts';
export { byPrice, type ToolCallPrice, viewToolCallPrice } from './catalog/tool-price.ts';
export { createExecute, type StopCall } from './execute.ts';
export { createFree } from './free.ts';
export { endOnly } from './end-only.ts';
export {
  createIdempotency,
  type GivenReply,
  type Idempotency,
  idempotencyError,
  KEPT_BYTES_MAX,
  parseIdempotencyKey,
  type StoredReply,
} from './idempotency/idempotency.ts';
export { createKeptBytes } from './idempotency/kept-bytes.ts';
export { singleRequest } from './single-request.ts';
export { messageFault } from './json-rpc/message-fault.ts';
export { onceOnly } from './json-rpc/once-only.ts';
export type { LargeReply } from './json-rpc/read-bytes.ts';
export {
  ANSWER_LIMITS,
  answerTo,
  hasEvents,
  isIdOf,
  type Marker,
  onlyAnswerTo,
  parseGuarded,
  readEventData,
  readOne,
  readReply,
  readText,
  type Received,
  refuseOtherAnswer,
} from './json-rpc/upstream-messages.ts';
export { UNLIMITED } from './limits/bucket.ts';
export type { RateLimiter, RatePolicy } from './limits/limiter.ts';
export { createStreamQuota, LISTEN_MS, type StreamSlot, type StreamQuota, OVER } from './limits/stream-quota.ts';
export { createRatePolicies, rateHeaders, rateLimitError } from './limits/rate-headers.ts';
export { createRateLimiter } from './limits/redis-limiter.ts';
export type { AccountRates, CallerBudget, Rates } from './limits/caller-limits.ts';
export { spendTokens } from './limits/spend-tokens.ts';
export { createCounter, type Counter } from './limits/counter.ts';
export type { CallObserver } from './observer.ts';
export {
  decodePartsEvents,
  encodePartsEvent,
  type FilePart,
  lastOf,
  NO_TASK,
  partsEndOf,
  type Part,
  type PartsEnd,
  type PartsEvent,
  largePart,
  type LargeFile,
  type ContentTurn,
} from './parts/part.ts';
export {
  type TargetContext,
  type TargetRequest,
  type TargetAdapter,
  targetOf,
  type TargetAdapters,
  type ServiceDescription,
} from './parts/target-adapter.ts';
export { createLockPayments, type LockPayments } from './payments/lock-payments.ts';
export { paidCaller } from './payments/paid-caller.ts';
export { receiptSink, receiptHeaders, tellPayment } from './payments/paid-sink.ts';
export { PAYMENT_HEADERS, paymentHeader, paymentOf, readPayment } from './payments/payment-header.ts';
export { canonical, keyedRequest, paymentKey, requestKey } from './payments/payment-key.ts';
export { PaymentNeeded, refusesPayment } from './payments/payment-needed.ts';
export { NO_PAYMENTS, type PaymentReceipt, type Payments, type PaymentAttempt } from './payments/payments.ts';
export { errorWithTerms, withTerms } from './payments/with-terms.ts';
export { type Admission, limitedAs, sharedAs } from './limits/caller-rates.ts';
export { createPipeline, type Pipeline, type PipelineOptions, toBillable } from './pipeline.ts';
export { newCallId } from './new-call-id.ts';
export { bodyBytes, PiecedBody, type PieceSource } from './pieced-body.ts';
export {
  answersOn,
  bodyFrom,
  servedRequest,
  onceSettled,
  PAYABLE,
  type Payer,
  payerOf,
  refusedWithTerms,
  refuseEncoding,
  takeBytes,
} from './paid-route.ts';
export { authorise } from './prepare.ts';
export { costOf, type CostOf, wasCharged } from './reply/cost-of.ts';
export { recordReply } from './reply/recorded-reply.ts';
export { createReplyMemory, type ReplyHold } from './reply/reply-memory.ts';
export {
  clampReportedUsage,
  type MeasuredWork,
  ONE_CALL,
  readReportedUsage,
  type ReportedUsage,
} from './reported-usage.ts';
export type { Quotable } from './quotes/quotable.ts';
export { QUOTE_HEADER, type RequestedQuote, requestedQuote } from './quotes/requested-quote.ts';
export { quoteCall, type QuoteView } from './quotes/quote-call.ts';
export { quoteSchema } from './quotes/quote-schema.ts';
export { createQuotes, type Quotes } from './quotes/quotes.ts';
export { createArrivals } from './routing/arrivals.ts';
export { createHealth } from './routing/health.ts';
export { openKeptFigures } from './routing/kept-figures.ts';
export { releaseProbes } from './routing/release-probes.ts';
export { requestedModels, withModel } from './routing/requested-models.ts';
export { NO_PREFERENCES, type RoutePreferences } from './routing/preferences.ts';
export { createRetryBudget } from './routing/retry-budget.ts';
export type { Health } from './routing/router.ts';
export { type ProviderPreferences, routingFields, toPreferences } from './routing/routing-fields.ts';
export { requestedSession } from './routing/requested-session.ts';
export { createRouter } from './routing/weighted-router.ts';
export { type FreeCall, runFree } from './run-free.ts';
export { createRuns, type Run, type Runs } from './runs.ts';
export { closeGracefully, createConnectionRelease, createDrain } from './server/shutdown.ts';
export {
  type PendingRequest,
  createHandlePaidRequest,
  openCall,
  type StartedCall,
  type StartedProviderCall,
  type Refusal,
  type RepeatKey,
  type HandlePaidRequest,
  type TakenKey,
  type ResponseRecord,
} from './handle-paid-request.ts';
export {
  addressOf,
  admissionOf,
  clientNetworkOf,
  noteAdmission,
  noteVisitor,
  shownAddress,
  type CookieKind,
  cookieNames,
  cookieValues,
  letCookieCount,
  type WebRequest,
  webRequestOf,
} from './server/request-context.ts';
export { bodiesBytesOf, type BodyRefusal, PARSED_JSON, type HeldBody, heldBodyOf } from './server/body-memory.ts';
export { allowPages } from './server/cors.ts';
export {
  nameSchema,
  numberField,
  objectField,
  tokensField,
  createCheck,
  DOCUMENTED,
  DOCUMENTED_USD,
  hasValue,
  notTogether,
  onlyIf,
  onlyTogether,
} from './server/schemas.ts';
export { UNCOUNTED_BYTES, type MoreMemory, readBytes, type RequestBodies } from './server/request-bodies.ts';
export { MUST_BE, toGatewayError, unknownMember } from './server/errors.ts';
export { createServer, type ServerOptions } from './server/server.ts';
export { answerMissingPages } from './server/unknown-routes.ts';
export { wantsReceipt } from './wants-receipt.ts';
export { CALL_OVER, type Upstream, type UpstreamExchange, type UpstreamOf, type UpstreamReply } from './upstream.ts';

export {
  ACCOUNT_HEADER,
  letAct,
  type MemberRole,
  nobodyActs,
  ownPartOf,
  roleToAct,
  anonymousAt,
  hasCredentials,
  needsCredential,
  ANONYMOUS_ACCOUNT,
  type Caller,
  isDevelopment,
  OWN_ACCOUNT,
  type AccountRates,
  type CallerBudget,
  type Rates,
} from './caller.ts';
export { callGraceMs, type CallRequest, type Call, type Candidate, type CallObserver, newCallId } from './call.ts';
export {
  type ProviderAdapter,
  type Cut,
  type RequestAdapter,
  measuredUse,
  PROVIDER_FLAGS,
  type ProviderFlag,
  type ReplyEnd,
  type ReplyReader,
  type ProviderStream,
  endOnly,
  singleRequest,
} from './provider-adapter.ts';
export {
  type Send,
  type UpstreamRequest,
  bodyBytes,
  PiecedBody,
  type PieceSource,
  CALL_OVER,
  type Upstream,
  type UpstreamExchange,
  type UpstreamOf,
  type UpstreamReply,
} from './upstream.ts';
export {
  type DirectEndpoint,
  type Offer,
  type Provider,
  type TunnelEndpoint,
  withFirstSeen,
  offersFromConfig,
  pinned,
  toOffer,
} from './catalog/offers.ts';
export { capCost, type CostCap, lowestCap, MAX_COST_HEADER, MAX_COST_META, refuseCapBeside } from './cost-cap.ts';
export {
  type Catalog,
  createCatalog,
  type Resolved,
  nearestHint,
  nearestNames,
  createOffersById,
  resolveAny,
} from './catalog/catalog.ts';
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
  byPrice,
  type ToolCallPrice,
  viewToolCallPrice,
} from './catalog/price-view.ts';
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
  createToolPins,
  type ToolPin,
  type ToolPins,
} from './catalog/tool-definitions.ts';
export { createExecute, type StopCall } from './execute.ts';
export { createFree, type FreeCall, runFree } from './free-calls.ts';
export {
  createIdempotency,
  type GivenReply,
  type Idempotency,
  idempotencyError,
  KEPT_BYTES_MAX,
  parseIdempotencyKey,
  type StoredReply,
  createKeptBytes,
} from './idempotency.ts';
export { messageFault } from './json-rpc/message-fault.ts';
export {
  onceOnly,
  type LargeReply,
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
export { UNLIMITED, type RateLimiter, type RatePolicy, spendTokens } from './limits/rate-limiter.ts';
export {
  createStreamQuota,
  LISTEN_MS,
  type StreamSlot,
  type StreamQuota,
  OVER,
  createCounter,
  type Counter,
} from './limits/stream-quota.ts';
export {
  createRatePolicies,
  rateHeaders,
  rateLimitError,
  type Admission,
  limitedAs,
  sharedAs,
} from './limits/caller-rates.ts';
export { createRateLimiter } from './limits/redis-limiter.ts';
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
  type TargetContext,
  type TargetRequest,
  type TargetAdapter,
  targetOf,
  type TargetAdapters,
  type ServiceDescription,
} from './target-adapter.ts';
export { createLockPayments, type LockPayments } from './payments/lock-payments.ts';
export {
  paidCaller,
  PaymentNeeded,
  refusesPayment,
  NO_PAYMENTS,
  type PaymentReceipt,
  type Payments,
  type PaymentAttempt,
  errorWithTerms,
  withTerms,
} from './payments/payments.ts';
export {
  receiptSink,
  receiptHeaders,
  tellPayment,
  PAYMENT_HEADERS,
  paymentHeader,
  paymentOf,
  readPayment,
  canonical,
  keyedRequest,
  paymentKey,
  requestKey,
} from './payments/payment-header.ts';
export { createPipeline, type Pipeline, type PipelineOptions, toBillable } from './pipeline.ts';
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
  costOf,
  type CostOf,
  wasCharged,
  recordReply,
  wantsReceipt,
} from './paid-route.ts';
export { authorise } from './prepare.ts';
export { createReplyMemory, type ReplyHold } from './reply-memory.ts';
export {
  clampReportedUsage,
  type MeasuredWork,
  ONE_CALL,
  readReportedUsage,
  type ReportedUsage,
} from './reported-usage.ts';
export { type Quotable, quoteCall, type QuoteView, quoteSchema } from './quote-call.ts';
export { QUOTE_HEADER, type RequestedQuote, requestedQuote, createQuotes, type Quotes } from './quotes.ts';
export { createArrivals } from './routing/arrivals.ts';
export { createHealth, type Health } from './catalog/health/health.ts';
export { openKeptFigures } from './catalog/health/kept-figures.ts';
export { releaseProbes, createRouter } from './routing/router.ts';
export {
  requestedModels,
  withModel,
  NO_PREFERENCES,
  type RoutePreferences,
  type ProviderPreferences,
  routingFields,
  toPreferences,
  requestedSession,
} from './routing/preferences.ts';
export { createRetryBudget } from './attempts.ts';
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

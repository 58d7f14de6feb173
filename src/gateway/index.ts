/* The HTTP server: requests, bodies, schemas, errors, shutdown. */

export { bodiesBytesOf, type BodyRefusal, type HeldBody, heldBodyOf, PARSED_JSON } from './server/body-memory.ts';
export { allowPages } from './server/cors.ts';
export { MUST_BE, toGatewayError, unknownMember } from './server/errors.ts';
export {
  type MoreMemory,
  PAYMENT_HEADERS,
  readBytes,
  type RequestBodies,
  UNCOUNTED_BYTES,
} from './server/request-bodies.ts';
export {
  addressOf,
  admissionOf,
  clientNetworkOf,
  type CookieKind,
  cookieNames,
  cookieValues,
  letCookieCount,
  noteAdmission,
  noteVisitor,
  shownAddress,
  type WebRequest,
  webRequestOf,
} from './server/request-context.ts';
export {
  createCheck,
  DOCUMENTED,
  DOCUMENTED_USD,
  hasValue,
  nameSchema,
  notTogether,
  numberField,
  objectField,
  onlyIf,
  onlyTogether,
  tokensField,
} from './server/schemas.ts';
export { createServer, type ServerOptions } from './server/server.ts';
export { closeGracefully, createConnectionRelease, createDrain } from './server/shutdown.ts';
export { createFreshPage, hasTagged, sendPage, type TaggedPage, tagOf, tagPage } from './server/tagged-page.ts';
export { answerMissingPages } from './server/unknown-routes.ts';

/* The catalogue: offers, their prices, health and tools. */

export {
  type Catalog,
  createCatalog,
  createOffersById,
  nearestHint,
  nearestNames,
  resolveAny,
  type Resolved,
} from './catalog/catalog.ts';
export {
  flagsSchema,
  healthProperties,
  type HealthSources,
  type HealthView,
  offerStatus,
  type OfferStatus,
  raisedSchema,
  statusSchema,
  viewHealth,
} from './catalog/health-view.ts';
export { createHealth, type Health } from './catalog/health/health.ts';
export { openKeptFigures } from './catalog/health/kept-figures.ts';
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
  type DirectEndpoint,
  type Offer,
  offersFromConfig,
  pinned,
  type Provider,
  toOffer,
  type TunnelEndpoint,
  withFirstSeen,
} from './catalog/offers.ts';
export {
  byPrice,
  type ImagePrice,
  type ModelPrice,
  type PriceView,
  type RaiseView,
  type ToolCallPrice,
  type VideoPrice,
  viewImagePrice,
  viewModelPrice,
  viewPrice,
  viewRaise,
  viewToolCallPrice,
  viewVideoPrice,
} from './catalog/price-view.ts';
export {
  createToolPins,
  type DefinitionView,
  type ListedTool,
  type ToolDefinition,
  type ToolListings,
  type ToolPin,
  type ToolPins,
  viewDefinition,
} from './catalog/tool-definitions.ts';

/* Messages of JSON-RPC from servers. */

export { messageFault } from './json-rpc/message-fault.ts';
export {
  ANSWER_LIMITS,
  answerTo,
  hasEvents,
  isIdOf,
  type LargeReply,
  type Marker,
  onceOnly,
  onlyAnswerTo,
  parseGuarded,
  readEventData,
  readOne,
  readReply,
  readText,
  type Received,
  refuseOtherAnswer,
} from './json-rpc/upstream-messages.ts';

/* Calls: who makes them, what they may cost, how they are limited, paid and run. */

export { createRetryBudget } from './attempts.ts';
export { type Call, callGraceMs, type CallObserver, type CallRequest, type Candidate, newCallId } from './call.ts';
export {
  ACCOUNT_HEADER,
  type AccountRates,
  ANONYMOUS_ACCOUNT,
  anonymousAt,
  type Caller,
  type CallerBudget,
  isDevelopment,
  letAct,
  type MemberRole,
  needsCredential,
  nobodyActs,
  OWN_ACCOUNT,
  ownPartOf,
  type Rates,
  roleToAct,
} from './caller.ts';
export { capCost, type CostCap, lowestCap, MAX_COST_HEADER, MAX_COST_META, refuseCapBeside } from './cost-cap.ts';
export { createExecute, type StopCall } from './execute.ts';
export { createFree, type FreeCall, runFree } from './free-calls.ts';
export {
  createHandlePaidRequest,
  type HandlePaidRequest,
  openCall,
  type PendingRequest,
  type Refusal,
  type RepeatKey,
  type ResponseRecord,
  type StartedCall,
  type StartedProviderCall,
  type TakenKey,
} from './handle-paid-request.ts';
export {
  createIdempotency,
  createKeptBytes,
  type GivenReply,
  type Idempotency,
  idempotencyError,
  KEPT_BYTES_MAX,
  parseIdempotencyKey,
  type StoredReply,
} from './idempotency.ts';
export {
  type Admission,
  createRatePolicies,
  limitedAs,
  rateHeaders,
  rateLimitError,
  sharedAs,
} from './limits/caller-rates.ts';
export { type RateLimiter, type RatePolicy, spendTokens, UNLIMITED } from './limits/rate-limiter.ts';
export { createRateLimiter } from './limits/redis-limiter.ts';
export {
  type Counter,
  createCounter,
  createStreamQuota,
  LISTEN_MS,
  OVER,
  type StreamQuota,
  type StreamSlot,
} from './limits/stream-quota.ts';
export {
  answersOn,
  bodyFrom,
  costOf,
  type CostOf,
  onceSettled,
  PAYABLE,
  type Payer,
  payerOf,
  recordReply,
  refusedWithTerms,
  refuseEncoding,
  servedRequest,
  takeBytes,
  wantsReceipt,
  wasCharged,
} from './paid-route.ts';
export { createLockPayments, type LockPayments } from './payments/lock-payments.ts';
export {
  canonical,
  keyedRequest,
  paymentHeader,
  paymentKey,
  paymentOf,
  readPayment,
  receiptHeaders,
  receiptSink,
  requestKey,
  tellPayment,
} from './payments/payment-header.ts';
export {
  errorWithTerms,
  NO_PAYMENTS,
  paidCaller,
  type PaymentAttempt,
  PaymentNeeded,
  type PaymentReceipt,
  type Payments,
  refusesPayment,
  withTerms,
} from './payments/payments.ts';
export { createPipeline, type Pipeline, type PipelineOptions, toBillable } from './pipeline.ts';
export { authorise } from './prepare.ts';
export {
  type Cut,
  endOnly,
  measuredUse,
  PROVIDER_FLAGS,
  type ProviderAdapter,
  type ProviderFlag,
  type ProviderStream,
  type ReplyEnd,
  type ReplyReader,
  type RequestAdapter,
  singleRequest,
} from './provider-adapter.ts';
export { type Quotable, quoteCall, quoteSchema, type QuoteView } from './quote-call.ts';
export { createQuotes, QUOTE_HEADER, type Quotes, type RequestedQuote, requestedQuote } from './quotes.ts';
export { createReplyMemory, type ReplyHold } from './reply-memory.ts';
export {
  clampReportedUsage,
  type MeasuredWork,
  ONE_CALL,
  readReportedUsage,
  type ReportedUsage,
} from './reported-usage.ts';
export { createArrivals } from './routing/arrivals.ts';
export {
  NO_PREFERENCES,
  type ProviderPreferences,
  requestedModels,
  requestedSession,
  type RoutePreferences,
  routingFields,
  toPreferences,
  withModel,
} from './routing/preferences.ts';
export { createRouter, releaseProbes } from './routing/router.ts';
export { createRuns, type Run, type Runs } from './runs.ts';
export {
  type ContentTurn,
  decodePartsEvents,
  encodePartsEvent,
  type FilePart,
  type LargeFile,
  largePart,
  lastOf,
  NO_TASK,
  type Part,
  type PartsEnd,
  partsEndOf,
  type PartsEvent,
  type ServiceDescription,
  type TargetAdapter,
  type TargetAdapters,
  type TargetContext,
  targetOf,
  type TargetRequest,
} from './target-adapter.ts';
export {
  bodyBytes,
  CALL_OVER,
  PiecedBody,
  type PieceSource,
  type Send,
  type Upstream,
  type UpstreamExchange,
  type UpstreamOf,
  type UpstreamReply,
  type UpstreamRequest,
} from './upstream.ts';
export { hasCredentials } from './visitor.ts';

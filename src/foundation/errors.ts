/*
 * The errors of the gateway that its clients see. All modules throw GatewayError with a code of the table; any other
 * value becomes `internal` (toGatewayError, src/server/http/errors.ts).
 *
 * To add an error, add a row: it says what each wire makes of the error, and of which kind it is. If a module needs to
 * know one more kind, add a flag to the rows, not a set of codes in that module: nothing would remind of the set.
 * src/server/http/README.md ("An error code") has the rest: the pages that describe the error, and how to try it on
 * each wire.
 */

/** Codes that JSON-RPC defines. */
const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

/** The codes of gRPC that fit a refusal (google/rpc/code.proto). */
type CanonicalCode =
  | 'INVALID_ARGUMENT'
  | 'DEADLINE_EXCEEDED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'UNAUTHENTICATED';

/** The types of errors in Anthropic's API. Its clients know no others. */
type AnthropicType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'billing_error'
  | 'permission_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'timeout_error'
  | 'api_error'
  | 'overloaded_error';

interface ErrorRow {
  /** HTTP status of all routes but those of MCP, A2A and JSON-RPC. */
  readonly status: number;
  /** `error.type` in the body; default the code. No two errors have both type and status in common. */
  readonly type?: string;
  /**
   * Code of the error in MCP, A2A and JSON-RPC: one that JSON-RPC defines, or -32010 to -32019. These are all in use,
   * so a new error takes that of the most similar error. `data.type` distinguishes the two.
   */
  readonly jsonRpc: number;
  /**
   * HTTP status of an error that is the whole reply in MCP and in A2A's binding of HTTP and JSON. Default `status`.
   * That is right unless clients of these protocols take this status for something else, such as 202 for "no answer
   * comes", or do not know it, such as 529.
   */
  readonly protocolStatus?: number;
  /**
   * HTTP status of an error that is the whole reply on JSON-RPC, also in A2A. The official Python clients of A2A read
   * an error only from a 200. Another status is for errors that HTTP layers of clients handle themselves: credentials,
   * money, rate, and bodies that are not read to their end. Default 200.
   */
  readonly rpcStatus?: number;
  /**
   * The canonical code of gRPC, in A2A. Clients base retries on it: a request that was UNAVAILABLE is sent again as it
   * is, one that was ABORTED after a change, and FAILED_PRECONDITION says that something else must be done before.
   */
  readonly canonical: CanonicalCode;
  /** The type of the error in Anthropic's API: the one that its documentation lists for the status, or the nearest. */
  readonly anthropic: AnthropicType;
  /** The failure of a provider, so not logged as a fault of the gateway. */
  readonly ofProvider?: true;
  /**
   * The call was refused because money is missing, and its client gets payment terms. `needed`: no payment came.
   * `refused`: one came and is not valid, and another payment may be accepted.
   */
  readonly payment?: 'needed' | 'refused';
  /**
   * The client can correct it with other arguments. A tool that asks an agent or a model returns it as its result,
   * which the model of the client reads, and not as an error of the protocol.
   */
  readonly correctable?: true;
  /** The call has no record, because no lock was made. */
  readonly withoutLock?: true;
  /** The members of its body beside `error` over HTTP are in `data` of its error in JSON-RPC. */
  readonly bodyInData?: true;
}

/** All error codes. This is their only table: each wire format takes its own from it, see `eachError`. */
const TABLE = {
  invalid_request: {
    status: 400,
    jsonRpc: INVALID_PARAMS,
    canonical: 'INVALID_ARGUMENT',
    anthropic: 'invalid_request_error',
    correctable: true,
  },
  unauthorized: {
    status: 401,
    jsonRpc: -32010,
    rpcStatus: 401,
    canonical: 'UNAUTHENTICATED',
    anthropic: 'authentication_error',
  },
  insufficient_balance: {
    status: 402,
    jsonRpc: -32011,
    rpcStatus: 402,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'billing_error',
    withoutLock: true,
    payment: 'needed',
    bodyInData: true,
  },
  // Not 202 in MCP and A2A, because to their clients it means that no answer comes.
  payment_pending: {
    status: 202,
    jsonRpc: -32019,
    protocolStatus: 503,
    canonical: 'UNAVAILABLE',
    anthropic: 'billing_error',
    withoutLock: true,
  },
  payment_expired: {
    status: 402,
    jsonRpc: -32011,
    rpcStatus: 402,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'billing_error',
    withoutLock: true,
    payment: 'refused',
  },
  payment_verification_failed: {
    status: 402,
    jsonRpc: -32011,
    rpcStatus: 402,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'billing_error',
    withoutLock: true,
    payment: 'refused',
  },
  insufficient_payment: {
    status: 402,
    jsonRpc: -32011,
    rpcStatus: 402,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'billing_error',
    withoutLock: true,
    payment: 'refused',
  },
  permission_denied: {
    status: 403,
    jsonRpc: -32012,
    rpcStatus: 403,
    canonical: 'PERMISSION_DENIED',
    anthropic: 'permission_error',
  },
  // Clients of chat repeat a 409 or a 425 by themselves, and a person does not decide in seconds.
  approval_required: {
    status: 403,
    jsonRpc: -32012,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'permission_error',
    withoutLock: true,
    bodyInData: true,
  },
  approval_refused: {
    status: 403,
    jsonRpc: -32012,
    canonical: 'PERMISSION_DENIED',
    anthropic: 'permission_error',
    withoutLock: true,
    bodyInData: true,
  },
  invalid_model: {
    status: 404,
    jsonRpc: -32013,
    canonical: 'NOT_FOUND',
    anthropic: 'not_found_error',
    correctable: true,
  },
  not_found: { status: 404, jsonRpc: -32013, canonical: 'NOT_FOUND', anthropic: 'not_found_error', correctable: true },
  // A call whose record is in an archive of the operator.
  archived: { status: 410, jsonRpc: -32013, canonical: 'NOT_FOUND', anthropic: 'not_found_error' },
  expired: { status: 404, jsonRpc: -32013, canonical: 'NOT_FOUND', anthropic: 'not_found_error' },
  method_not_allowed: {
    status: 405,
    jsonRpc: INVALID_PARAMS,
    canonical: 'INVALID_ARGUMENT',
    anthropic: 'invalid_request_error',
  },
  idempotency_conflict: { status: 409, jsonRpc: -32014, canonical: 'ABORTED', anthropic: 'invalid_request_error' },
  quote_expired: { status: 409, jsonRpc: -32014, canonical: 'ABORTED', anthropic: 'invalid_request_error' },
  quote_used: { status: 409, jsonRpc: -32014, canonical: 'ABORTED', anthropic: 'invalid_request_error' },
  quote_mismatch: { status: 409, jsonRpc: -32014, canonical: 'ABORTED', anthropic: 'invalid_request_error' },
  call_ended: { status: 409, jsonRpc: -32014, canonical: 'ABORTED', anthropic: 'invalid_request_error' },
  request_timeout: {
    status: 408,
    type: 'invalid_request',
    jsonRpc: -32015,
    rpcStatus: 408,
    canonical: 'DEADLINE_EXCEEDED',
    anthropic: 'timeout_error',
  },
  payload_too_large: {
    status: 413,
    jsonRpc: -32015,
    rpcStatus: 413,
    canonical: 'OUT_OF_RANGE',
    anthropic: 'request_too_large',
  },
  unsupported_coding: {
    status: 415,
    type: 'invalid_request',
    jsonRpc: INVALID_PARAMS,
    rpcStatus: 415,
    canonical: 'INVALID_ARGUMENT',
    anthropic: 'invalid_request_error',
  },
  unprocessable: {
    status: 422,
    jsonRpc: INVALID_PARAMS,
    canonical: 'INVALID_ARGUMENT',
    anthropic: 'invalid_request_error',
    correctable: true,
  },
  content_policy: {
    status: 422,
    jsonRpc: INVALID_PARAMS,
    canonical: 'INVALID_ARGUMENT',
    anthropic: 'invalid_request_error',
  },
  escrow_not_setup: {
    status: 424,
    jsonRpc: -32011,
    protocolStatus: 402,
    rpcStatus: 402,
    canonical: 'FAILED_PRECONDITION',
    anthropic: 'invalid_request_error',
    withoutLock: true,
    payment: 'needed',
  },
  rate_limit_exceeded: {
    status: 429,
    jsonRpc: -32016,
    rpcStatus: 429,
    canonical: 'RESOURCE_EXHAUSTED',
    anthropic: 'rate_limit_error',
  },
  overloaded: {
    status: 529,
    jsonRpc: -32017,
    protocolStatus: 503,
    canonical: 'UNAVAILABLE',
    anthropic: 'overloaded_error',
    ofProvider: true,
  },
  provider_unavailable: {
    status: 500,
    jsonRpc: -32017,
    protocolStatus: 502,
    canonical: 'UNAVAILABLE',
    anthropic: 'api_error',
    ofProvider: true,
  },
  reply_cut: { status: 500, jsonRpc: -32017, protocolStatus: 502, canonical: 'OUT_OF_RANGE', anthropic: 'api_error' },
  no_provider_healthy: {
    status: 503,
    type: 'provider_unavailable',
    jsonRpc: -32017,
    canonical: 'UNAVAILABLE',
    anthropic: 'overloaded_error',
    ofProvider: true,
  },
  service_unavailable: {
    status: 503,
    type: 'internal',
    jsonRpc: -32018,
    canonical: 'UNAVAILABLE',
    anthropic: 'overloaded_error',
  },
  internal: { status: 500, jsonRpc: INTERNAL, canonical: 'INTERNAL', anthropic: 'api_error' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof TABLE;
export type ErrorStatus = (typeof TABLE)[ErrorCode]['status'];
/** The errors of a payment that is not valid. */
export type PaymentRefusal = {
  [Code in ErrorCode]: (typeof TABLE)[Code] extends { readonly payment: 'refused' } ? Code : never;
}[ErrorCode];
const ERRORS: Readonly<Record<ErrorCode, ErrorRow>> = TABLE;
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** The error table of a wire format. */
export const eachError = <T>(make: (row: ErrorRow, code: ErrorCode) => T): Readonly<Record<ErrorCode, T>> =>
  Object.fromEntries(ERROR_CODES.map((code) => [code, make(ERRORS[code], code)])) as Record<ErrorCode, T>;

export interface GatewayErrorOptions {
  /** The request field that is wrong, as a path: `messages[2].role`. */
  readonly param?: string | undefined;
  /** Seconds after which a retry can help. */
  readonly retryAfterS?: number | undefined;
  /** Response headers of this error over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Members of the body beside `error` over HTTP: how to pay for the call. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The code by which the provider, or the API that it publishes, names the reason, such as `context_length_exceeded`.
   */
  readonly providerCode?: string | undefined;
  readonly cause?: unknown;
}

/** An error that the caller may see. `message` never holds a secret, a provider's key or a stack. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  readonly param: string | undefined;
  readonly retryAfterS: number | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly body: Readonly<Record<string, unknown>> | undefined;
  readonly providerCode: string | undefined;
  constructor(code: ErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.param = options.param;
    this.retryAfterS = options.retryAfterS;
    this.headers = options.headers;
    this.body = options.body;
    this.providerCode = options.providerCode;
  }
}

/** The error of requests that come, or that still run, when a gateway stops. It is no fault, so it raises no alert. */
export class GatewayStopping extends GatewayError {
  constructor() {
    super('service_unavailable', 'This gateway is shutting down: retry in a moment, or at another gateway', {
      retryAfterS: 1,
    });
  }
}

export const isOfProvider = (code: ErrorCode): boolean => ERRORS[code].ofProvider === true;

/** Whether an error is about money that is missing, see `payment` of a row; undefined for any other error. */
export const paymentOf = (code: ErrorCode): 'needed' | 'refused' | undefined => ERRORS[code].payment;

/** The members of an error's body that belong into `data` of JSON-RPC. */
export const dataInBody = ({ code, body }: GatewayError): Readonly<Record<string, unknown>> =>
  (ERRORS[code].bodyInData && body) || {};

export const isCorrectable = (code: ErrorCode): boolean => ERRORS[code].correctable === true;

/**
 * Adds the header that names the call's record in `/generation`, so that a client without an answer can look up the
 * cost. Errors of calls without a lock stay as they are.
 */
export function ofGeneration(error: GatewayError, callId: string): GatewayError {
  if (ERRORS[error.code].withoutLock) return error;
  const { code, message, cause, param, retryAfterS, headers, body, providerCode } = error;
  return new GatewayError(code, message, {
    // So that the log still sees the kind of the error.
    cause: error instanceof GatewayStopping ? error : cause,
    param,
    retryAfterS,
    providerCode,
    headers: { ...headers, 'x-generation-id': callId },
    ...(body ? { body } : {}),
  });
}

/*
 * The errors of the gateway that its clients see. All modules throw GatewayError with one of these codes; any other
 * value becomes `internal` (toGatewayError, src/http/errors.ts). Each wire format has a table: src/http/error-table.ts,
 * src/mcp/wire/errors-mcp.ts, src/a2a/wire/errors.ts, src/rpc/errors-rpc.ts, src/openai/messages/anthropic-error.ts.
 *
 * To add a code: add it to ERROR_CODES, to the five tables, which the compiler names, and to the tables of
 * docs/errors.md, docs/mcp.md, docs/a2a.md and docs/json-rpc.md. Tests compare these pages with the code
 * (test/gateway/errors-documented.test.ts, and documented.test.ts of mcp, a2a and rpc). Nothing reminds of the sets
 * below and in src/payments/payments.ts, which say what a code means beside its status, and of HELP in
 * web/src/api/api-error.ts. CONTRIBUTING.md has the rules for codes and statuses.
 */

/**
 * All error codes. Each wire format has a table of exactly these codes, and the compiler checks that it is complete.
 */
export const ERROR_CODES = [
  'invalid_request',
  'unauthorized',
  'insufficient_balance',
  'payment_pending',
  'payment_expired',
  'payment_verification_failed',
  'insufficient_payment',
  'permission_denied',
  'invalid_model',
  'not_found',
  'expired',
  'method_not_allowed',
  'idempotency_conflict',
  'quote_expired',
  'quote_used',
  'quote_mismatch',
  'request_timeout',
  'payload_too_large',
  'unprocessable',
  'content_policy',
  'escrow_not_setup',
  'rate_limit_exceeded',
  'overloaded',
  'provider_unavailable',
  'reply_cut',
  'no_provider_healthy',
  'service_unavailable',
  'internal',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

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

const OF_PROVIDERS: ReadonlySet<ErrorCode> = new Set(['overloaded', 'provider_unavailable', 'no_provider_healthy']);

/** Whether an error is the failure of a provider, and so is not logged as a fault of the gateway. */
export const isOfProvider = (code: ErrorCode): boolean => OF_PROVIDERS.has(code);

/** Errors of calls without a record, because no lock was made. */
const WITHOUT_A_LOCK: ReadonlySet<ErrorCode> = new Set([
  'insufficient_balance',
  'insufficient_payment',
  'payment_expired',
  'payment_pending',
  'payment_verification_failed',
  'escrow_not_setup',
]);

/**
 * Adds the header that names the call's record in `/generation`, so that a client without an answer can look up the
 * cost. Errors of calls without a lock stay as they are.
 */
export function ofGeneration(error: GatewayError, callId: string): GatewayError {
  if (WITHOUT_A_LOCK.has(error.code)) return error;
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

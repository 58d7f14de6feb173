/**
 * One attempt failed.
 * - `retryable`: another provider may succeed.
 * - `blame`: `provider` counts against the provider's health. `request` means that the provider refused the request
 *   itself (4xx); the client gets the refusal, unless another provider serves the request. `account` means that the
 *   account already has as many requests there as allowed. `nobody` counts against nobody.
 * - `unsent`: the provider received no part of the request, so trying another provider adds no load.
 * - `unreachable`: the provider could not be reached.
 * - `absent`: the provider is not connected to any gateway, and did not connect while the call waited.
 * - `busy`: the provider has too many requests: of this gateway (`rate`), or of everybody (`load`).
 * - `timedOut`: the reply did not begin, or did not continue, in time.
 * - `tooLarge`: the reply is larger than the gateway accepts. The consumer may have caused that, so it is treated as
 *   a refused request.
 */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly status: number | null;
  readonly retryable: boolean;
  readonly attributedTo: 'provider' | 'request' | 'account' | 'nobody';
  /** The provider's message, safe to show to clients; null without a message. */
  readonly detail: string | null;
  /** The word by which the provider names the reason, safe to show to clients; null without one. */
  readonly code: string | null;
  readonly retryAfterS: number | undefined;
  readonly unsent: boolean;
  readonly unreachable: boolean;
  readonly absent: boolean;
  readonly tooLarge: boolean;
  /** The content of the request violates the provider's policy. */
  readonly policy: boolean;
  readonly busy: 'rate' | 'load' | null;
  readonly timedOut: boolean;
  readonly received: number;
  constructor(
    message: string,
    options: {
      status?: number | null;
      retryable: boolean;
      attributedTo: 'provider' | 'request' | 'account' | 'nobody';
      detail?: string | null;
      code?: string | null;
      retryAfterS?: number | undefined;
      unsent?: boolean;
      unreachable?: boolean;
      absent?: boolean;
      tooLarge?: boolean;
      policy?: boolean;
      busy?: 'rate' | 'load' | null;
      timedOut?: boolean;
      received?: number;
      cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status ?? null;
    this.retryable = options.retryable;
    this.attributedTo = options.attributedTo;
    this.detail = options.detail ?? null;
    this.code = options.code ?? null;
    this.retryAfterS = options.retryAfterS;
    this.unsent = options.unsent ?? false;
    this.unreachable = options.unreachable ?? false;
    this.absent = options.absent ?? false;
    this.tooLarge = options.tooLarge ?? false;
    this.policy = options.policy ?? false;
    this.busy = options.busy ?? null;
    this.timedOut = options.timedOut ?? false;
    this.received = options.received ?? 0;
  }
}

/**
 * The failure of a reply that is larger than the gateway accepts. It is not retryable, because another provider's reply
 * would probably be as large. `received` is the number of bytes received.
 */
export function tooLarge(
  message: string,
  {
    status = null,
    received = 0,
    cause,
  }: { readonly status?: number | null; readonly received?: number; readonly cause?: unknown } = {},
): UpstreamFailure {
  return new UpstreamFailure(message, {
    status,
    retryable: false,
    attributedTo: 'nobody',
    tooLarge: true,
    received,
    cause,
  });
}

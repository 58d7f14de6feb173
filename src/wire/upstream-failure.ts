/**
 * One attempt failed. `retryable`: another provider may do better. `blame`: `provider` counts against its health;
 * `request`: the request itself was refused (4xx), and the refusal passes through unless another provider serves the
 * request; `account`: the account has as many requests there as it may; `nobody` counts against nobody. `unsent`:
 * nothing of the request reached the provider, so that trying another adds no load. `unreachable`: the provider could
 * not be reached. `absent`: it is connected nowhere, and was waited for. `timedOut`: the reply did not begin, or not go
 * on, in time. `tooLarge`: the reply is larger than the gateway takes. Its consumer may have asked for that, so it is
 * treated as a refused request.
 */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly status: number | null;
  readonly retryable: boolean;
  readonly blame: 'provider' | 'request' | 'account' | 'nobody';
  /** The provider's own words, safe to show; null when it gave none. */
  readonly detail: string | null;
  readonly retryAfterS: number | undefined;
  readonly unsent: boolean;
  readonly unreachable: boolean;
  readonly absent: boolean;
  readonly tooLarge: boolean;
  /** The content of the request is against the provider's rules. */
  readonly policy: boolean;
  readonly timedOut: boolean;
  readonly received: number;
  constructor(
    message: string,
    options: {
      status?: number | null;
      retryable: boolean;
      blame: 'provider' | 'request' | 'account' | 'nobody';
      detail?: string | null;
      retryAfterS?: number | undefined;
      unsent?: boolean;
      unreachable?: boolean;
      absent?: boolean;
      tooLarge?: boolean;
      policy?: boolean;
      timedOut?: boolean;
      received?: number;
      cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status ?? null;
    this.retryable = options.retryable;
    this.blame = options.blame;
    this.detail = options.detail ?? null;
    this.retryAfterS = options.retryAfterS;
    this.unsent = options.unsent ?? false;
    this.unreachable = options.unreachable ?? false;
    this.absent = options.absent ?? false;
    this.tooLarge = options.tooLarge ?? false;
    this.policy = options.policy ?? false;
    this.timedOut = options.timedOut ?? false;
    this.received = options.received ?? 0;
  }
}

/**
 * The failure of a reply that is larger than the gateway takes. Not retryable by itself: another provider would be
 * asked for as much. `received`: bytes of it that had come.
 */
export function tooLarge(
  message: string,
  {
    status = null,
    received = 0,
    cause,
  }: { readonly status?: number | null; readonly received?: number; readonly cause?: unknown } = {},
): UpstreamFailure {
  return new UpstreamFailure(message, { status, retryable: false, blame: 'nobody', tooLarge: true, received, cause });
}

import type { IncomingHttpHeaders } from 'node:http';
import type { Frame, Usage } from '#billing';
import type { Call, Caller, Exchange, Offer, Primitive } from './call.ts';
import type { RatePolicy, RateDecision } from './limits/limiter.ts';
import type { RoutePreferences } from './routing/preferences.ts';

/** What a protocol hands to the pipeline: neutral facts and its native exchange. */
export interface CallRequest {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** The name called, then its fallbacks, as the consumer wrote them. */
  readonly targets: readonly string[];
  readonly preferences: RoutePreferences;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  readonly stream: boolean;
  readonly exchange: Exchange;
  /** The most that this call can use at `offer`. Must not be exceeded by what the exchange asks for. */
  readonly estimate: (offer: Offer) => Usage;
  readonly metadata: Readonly<Record<string, unknown>> | null;
}

export interface Admission {
  readonly caller: Caller;
  readonly rate: RateDecision;
}

/** authenticate → resolve → authorise → limit → bill → execute. One object for every protocol. */
export interface Pipeline {
  /** Authenticates and counts one request against the caller's limits. Throws GatewayError `unauthorized`, `rate_limit_exceeded`. */
  admit(headers: IncomingHttpHeaders): Promise<Admission>;
  /** Resolves the target to priced candidates and authorises the caller for them. Throws GatewayError `invalid_model`, `permission_denied`, `no_provider_healthy`. */
  prepare(request: CallRequest): Call;
  /**
   * Locks, forwards and settles. Iterate to the end; abort `signal` when the client is gone.
   * Throws GatewayError before or during the stream. The last frame is `settled`.
   */
  run(call: Call, signal: AbortSignal): AsyncIterable<Frame>;
  /** Calls in flight, for shutdown and metrics. */
  inFlight(): number;
}

export type { RatePolicy };

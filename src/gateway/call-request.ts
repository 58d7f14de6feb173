import type { CostCap } from './cap-cost.ts';
import type { MicroUsd, Price, Usage } from '#billing';
import type { Primitive } from '#config';
import type { Call, Caller, ProviderAdapter, Offer, ProviderStream } from './call.ts';
import type { PaymentAttempt } from './payments/payments.ts';
import type { RequestedQuote } from './quotes/requested-quote.ts';
import type { PricedFacts } from './quotes/quotes.ts';
import type { RoutePreferences } from './routing/preferences.ts';

/** A request as a protocol hands it to the pipeline: neutral facts and the native provider adapter. */
export interface CallRequest {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** The called name, then its fallbacks, as the consumer wrote them. */
  readonly targets: readonly string[];
  readonly preferences: RoutePreferences;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  /** Number of images in the prompt. */
  readonly images: number;
  readonly stream: boolean;
  readonly exchange: ProviderAdapter<ProviderStream>;
  /** The called part of the service; default null, the whole service. */
  readonly operation?: string | null;
  /** The price of this call at `offer`; default the offer's own. */
  readonly price?: (offer: Offer) => Price;
  /**
   * The price of this call at an offer with its earlier prices, even if such a call was not sold then. Default:
   * `price`, or the offer's own price if that throws.
   */
  readonly priceBefore?: (offer: Offer) => Price;
  /**
   * The members of the request that determine its cost at `offer`. A call can use a quote that was given for the same
   * members. Absent: a quote states the most that a call may cost.
   */
  readonly priced?: (offer: Offer) => PricedFacts;
  /** The quote that sets its price; default none. */
  readonly quote?: RequestedQuote | null;
  /**
   * Whether an offer can do more of the request than others: such offers are tried first. Default: all offers are
   * equal.
   */
  readonly prefers?: ((offer: Offer) => boolean) | undefined;
  /** The name of the method, if its protocol's table makes it free; default null, a billed call. */
  readonly free?: string | null;
  /** Id of the pending call that this one continues, a call of the same caller; default none. */
  readonly continues?: string | null;
  /**
   * Id of the running call from whose lock this one is paid, a call of the same caller. Default: as the caller's
   * credential says.
   */
  readonly parent?: string | null;
  /**
   * The most that this call and all calls under it may cost. The part above its own estimate is locked for the calls
   * under it. Default: the most that the offer's agent may spend on calls. Useless for a call under which no calls can
   * be made.
   */
  readonly budget?: MicroUsd | null;
  /**
   * The consumer named the most that the call may cost, so it accepts a price that rose sharply. Default: true if there
   * is a `budget`.
   */
  readonly capped?: boolean;
  /** The cap that `capCost` applied, and the request without it. */
  readonly cap?: CostCap & { readonly of: CallRequest };
  /** Wall-clock limit of the whole call; default the configured one. */
  readonly timeoutMs?: number;
  /**
   * The most that this call can use at `offer`, or, if that is not known, the most that it is charged. The request that
   * the exchange sends must not ask for more. Throws GatewayError `unprocessable` if the offer cannot serve this call:
   * `prepare` skips the offer, and throws that error when no offer is left.
   */
  readonly estimate: (offer: Offer) => Usage | ChargeCap;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The protocol's facts about this request, for attributes of the call's span; default none. */
  readonly facts?: () => Readonly<Record<string, string>>;
  /** The consumer's W3C `traceparent` header, unchanged. */
  readonly traceparent: string | null;
  /** The consumer asked for a signed receipt in the reply. */
  readonly wantsReceipt: boolean;
  /** The payment that came with the request; default none. */
  readonly payment?: PaymentAttempt | null;
  /**
   * Rejects with GatewayError if the caller has no room for what the call makes, such as one more task. `prepare` calls
   * it with the prepared call, after all checks of the request and before the call claims its quote. Default: no room
   * is needed.
   */
  readonly room?: (call: Call) => Promise<void>;
  /** See Call. */
  readonly onLocked?: (() => void) | undefined;
  /** See Call. */
  readonly outlivesClient?: boolean;
  /** See Call. */
  readonly memory?: HeldByCall;
}

/** Memory that a request holds until its call has ended, such as files that were fetched for it. */
export interface HeldByCall {
  release(): void;
}

/** The most that a call is charged, whatever it uses. */
export interface ChargeCap {
  readonly costMax: MicroUsd;
}

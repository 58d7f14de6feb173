import type { CostCap } from './cap-cost.ts';
import type { MicroUsd, Price, Usage } from '#billing';
import type { Primitive } from '#config';
import type { Caller, Conversation, Offer, Talk } from './call.ts';
import type { PaymentSlip } from './payments/payments.ts';
import type { QuoteAsked } from './quotes/quote-asked.ts';
import type { PricedFacts } from './quotes/quotes.ts';
import type { RoutePreferences } from './routing/preferences.ts';

/** A request as a protocol hands it to the pipeline: neutral facts and the native conversation. */
export interface CallRequest {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** The name called, then its fallbacks, as the consumer wrote them. */
  readonly targets: readonly string[];
  readonly preferences: RoutePreferences;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  /** Images that the prompt holds. */
  readonly images: number;
  readonly stream: boolean;
  readonly exchange: Conversation<Talk>;
  /** The part of the service that is called; default null, the whole. */
  readonly operation?: string | null;
  /** The price of this call at `offer`; default the offer's own. */
  readonly price?: (offer: Offer) => Price;
  /**
   * Members of the request that its cost at `offer` follows from. A call can use a quote of the same. Absent: a quote
   * says the most that a call may cost.
   */
  readonly priced?: (offer: Offer) => PricedFacts;
  /** The quote that it is charged by; default none. */
  readonly quote?: QuoteAsked | null;
  /** Offers that can do more of what is asked: they are tried before others. Default: all do the same. */
  readonly prefers?: ((offer: Offer) => boolean) | undefined;
  /** The method that is free by its protocol's table; default null, a billed call. */
  readonly free?: string | null;
  /** Id of the caller's own pending call that this one goes on with; default none. */
  readonly continues?: string | null;
  /** Id of the caller's own running call on whose lock this one draws; default what the caller's credential says. */
  readonly parent?: string | null;
  /**
   * Most that this call and all that are made under it may cost: what is above its own estimate is locked for them.
   * Default: the most that an offer's agent may spend of its own. A call that nothing can be made under has no use
   * for one.
   */
  readonly budget?: MicroUsd | null;
  /**
   * The consumer named the most that the call may cost, so that it accepts a price that jumped; default where it
   * has a `budget`.
   */
  readonly capped?: boolean;
  /** The cap of `capCost`, and the request without it. */
  readonly cap?: CostCap & { readonly of: CallRequest };
  /** Wall-clock limit of the whole call; default the configured one. */
  readonly timeoutMs?: number;
  /**
   * The most that this call can use at `offer`, which must not be exceeded by what the exchange asks for; or, where
   * that is not known, the most that it is charged. Throws GatewayError `unprocessable` when the offer cannot serve
   * this call: `prepare` passes it over, and throws that error when no offer is left.
   */
  readonly estimate: (offer: Offer) => Usage | ChargeCap;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Facts of the protocol about this request, as attributes of the call's span; default none. */
  readonly facts?: () => Readonly<Record<string, string>>;
  /** The consumer's W3C `traceparent` header, as it came. */
  readonly traceparent: string | null;
  /** The consumer asked for a signed receipt in the reply. */
  readonly wantsReceipt: boolean;
  /** The payment that came with the request; default none. */
  readonly payment?: PaymentSlip | null;
  /**
   * Rejects with GatewayError where the caller has no room for what the call makes. `prepare` asks once the request
   * itself is right, and before the call claims its quote. Default: no room is needed.
   */
  readonly room?: () => Promise<void>;
  /** See Call. */
  readonly outlivesClient?: boolean;
}

/** The most that a call is charged, whatever it uses. */
export interface ChargeCap {
  readonly costMax: MicroUsd;
}

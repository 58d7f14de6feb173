import type { JsonObject } from '#wire';
import type { Caller, PaymentSlip, QuoteAsked } from '#gateway';
import type { CardOrigin } from '../cards/card-pages.ts';
import type { Operation } from '../wire/methods.ts';
import type { A2aVersion } from '../wire/version.ts';

/** One request of a client for one agent, by whatever binding it came. */
export interface Ask {
  readonly operation: Operation;
  /** That the client speaks. */
  readonly version: A2aVersion;
  /** The name that was called: of a service, pinned or with a suffix, or of what another primitive's bridge has. */
  readonly service: string;
  /** In the form of JSON-RPC, in the client's version. */
  readonly params: JsonObject;
  /** The same as JSON text, as it came where it came so. */
  readonly paramsText: string;
  readonly caller: Caller;
  /** The payment that came with the message; null or absent for none. */
  readonly payment?: PaymentSlip | null;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  /** The header that says what the whole run of the call may cost, as it came; null without one. */
  readonly maxCost: string | readonly string[] | null;
  /** The quote that the call is charged by; null or absent for none. */
  readonly quote?: QuoteAsked | null;
  /** Extensions that the client activates, as the header said; null for none. */
  readonly extensions: string | null;
  /** Gives the address for cards in the answer; null where the Host of the request is not valid. */
  readonly origin: () => CardOrigin | null;
  /** The id of the client's request, as text for the call's span; null on HTTP+JSON. */
  readonly rpcId: string | null;
}

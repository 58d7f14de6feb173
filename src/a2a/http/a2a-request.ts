import type { JsonObject } from '#wire';
import type { Caller, PaymentAttempt, RequestedQuote } from '#gateway';
import type { CardOrigin } from '../cards/card-pages.ts';
import type { Operation, A2aVersion } from '../wire/protocol.ts';

/** One request of a client for one agent, from any binding. */
export interface A2aRequest {
  readonly operation: Operation;
  /** The client's version. */
  readonly version: A2aVersion;
  /** The called name: a service, which may be pinned or have a suffix, or a model or tool behind a bridge. */
  readonly service: string;
  /** The parameters in the form of JSON-RPC, in the client's version. */
  readonly params: JsonObject;
  /** The same as JSON text: the client's own text where it has this form. */
  readonly paramsText: string;
  readonly caller: Caller;
  /** The payment in the message; null or absent for none. */
  readonly payment?: PaymentAttempt | null;
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly wantsReceipt: boolean;
  /** The header with the cap for the cost of the whole run, unchanged; null without one. */
  readonly maxCost: string | readonly string[] | null;
  /** The quote that the call is charged by; null or absent for none. */
  readonly quote?: RequestedQuote | null;
  /** The extensions that the client activates, as in the header; null for none. */
  readonly extensions: string | null;
  /** The origin that cards in the response name; null if no origin is known. */
  readonly origin: () => CardOrigin | null;
  /** The id of the client's request, as text for the call's span; null on HTTP+JSON. */
  readonly rpcId: string | null;
}

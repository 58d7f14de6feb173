import type { IncomingHttpHeaders } from 'node:http';
import type { Caller } from '../call.ts';
import type { CallRequest } from '../call-request.ts';

/** Everything about a request for a quote except its body. */
interface QuotableContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
}

/** Reads the body of a call of one primitive. Throws or rejects with GatewayError for an invalid body. */
export type Quotable = (
  body: Readonly<Record<string, unknown>>,
  context: QuotableContext,
) => CallRequest | Promise<CallRequest>;

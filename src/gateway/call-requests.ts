import type { Call, Offer, Send, UpstreamRequest } from './call.ts';
import type { ReplyMemory } from './reply/reply-memory.ts';
import type { Upstream, UpstreamExchange } from './upstream.ts';

export interface CallRequestsOptions {
  readonly upstream: Upstream;
  /** Absent: the memory that replies use is not counted. */
  readonly replyMemory?: ReplyMemory;
}

/** The requests that one call has sent. All of them end with the call. */
export class CallRequests {
  /** Why the call was stopped early; null while it was not. */
  stopped: Error | null = null;
  readonly #options: CallRequestsOptions;
  readonly #account: string;
  readonly #sent: UpstreamExchange[] = [];
  readonly #over = new AbortController();

  constructor(options: CallRequestsOptions, { caller }: Call) {
    this.#options = options;
    this.#account = caller.account;
  }

  /** Aborts when the call is stopped. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** `last`: no other offer is left to try. `traced`: trace headers; null for none. Throws once stopped. */
  send(
    offer: Offer,
    request: UpstreamRequest,
    last: boolean,
    traced: Readonly<Record<string, string>> | null,
  ): UpstreamExchange {
    if (this.stopped) throw this.stopped;
    const { upstream, replyMemory } = this.#options;
    const exchange = upstream.send(offer.endpoint, withHeaders(request, traced), this.#account, last);
    if (replyMemory) exchange.memory = replyMemory.open(this.#account, offer.provider.id);
    this.#sent.push(exchange);
    return exchange;
  }

  /** Ends all requests. Nothing more can be sent. */
  stop(reason: Error): void {
    this.stopped ??= reason;
    this.abort(reason);
    this.#over.abort(reason);
  }

  abort(reason: Error): void {
    for (const exchange of this.#sent) exchange.abort(reason);
  }

  /** The call has ended. */
  over(): void {
    for (const exchange of this.#sent) exchange.over();
  }

  /** Frees the memory of the replies. */
  forget(): void {
    for (const exchange of this.#sent) exchange.memory?.release();
    this.#sent.length = 0;
  }
}

/** Sends requests that may outlive the call. The returned function does not keep the call in memory. */
export function detachedSend(
  upstream: Upstream,
  { endpoint }: Offer,
  account: string,
  traced: Readonly<Record<string, string>> | null,
): Send {
  return (request) => upstream.send(endpoint, withHeaders(request, traced), account);
}

const withHeaders = (request: UpstreamRequest, more: Readonly<Record<string, string>> | null): UpstreamRequest =>
  more === null ? request : { ...request, headers: { ...request.headers, ...more } };

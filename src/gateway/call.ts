import type { Budget, Frame, MicroUsd, Price, Usage } from '#billing';

/** What a service can be. Peers: each is called through the same pipeline and the same billing. */
export type Primitive = 'model' | 'tool' | 'agent' | 'image' | 'video';

/** Who calls: one account, and the credential it came with. */
export interface Caller {
  /** Ledger account of the consumer, for example `tollgate:local:dev`. */
  readonly account: string;
  readonly key: CallerKey | null;
}

/** The part of an API key that the pipeline acts on. */
export interface CallerKey {
  /** Public identifier of the key: the hash it is stored under. */
  readonly hash: string;
  readonly label: string;
  /** Keys of the development account. */
  readonly development: boolean;
  /** Service names the key may use; null is all. */
  readonly allowedServices: readonly string[] | null;
  /** What the key may spend in its current period. A key without a limit has a budget that no call can exceed, so that its use is counted. */
  readonly budget: Budget | null;
}

export interface Provider {
  /** Public key: base58 Ed25519, or a wallet address. */
  readonly id: string;
  readonly name: string;
}

/** Where an offer is served. Header values may be secrets: never logged, never sent to a consumer. */
export interface Endpoint {
  /** Base URL without a trailing slash, up to but without the path of the primitive (`…/v1`). */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** One provider's offer of one service at one price: what routing chooses from. */
export interface Offer {
  /** Unique over all offers: `<provider id>:<service name>`. */
  readonly id: string;
  /** The name that consumers call it by. */
  readonly service: string;
  readonly primitive: Primitive;
  readonly provider: Provider;
  readonly price: Price;
  readonly endpoint: Endpoint;
  readonly displayName: string;
  readonly createdAt: number;
  /** Facts of a model offer; null on other primitives. */
  readonly model: ModelFacts | null;
}

export interface ModelFacts {
  /** The model's name at the upstream API. */
  readonly upstreamModel: string;
  readonly contextLength: number;
  /** Most completion tokens the provider declares; null when it declares none. */
  readonly maxOutputTokens: number | null;
  readonly inputModalities: readonly string[];
  readonly outputModalities: readonly string[];
}

/** An offer that this call may be sent to, with what the call may cost there at most. */
export interface Candidate {
  readonly offer: Offer;
  readonly estimate: MicroUsd;
}

/** What goes upstream for one attempt. Header names are lower case. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Path below the endpoint's base URL, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | null;
}

/**
 * The native side of a call, made by its protocol. The pipeline carries it and never opens it.
 * One Exchange serves all attempts of its call.
 */
export interface Exchange {
  request(offer: Offer): UpstreamRequest;
  /** A reader for one attempt. */
  reader(offer: Offer): ReplyReader;
}

/** Reads one upstream reply: bytes in, bytes for the client out, usage at the end. Methods run in this order, on one reply. */
export interface ReplyReader {
  /**
   * The status line and headers arrived. Throws UpstreamFailure when the reply cannot be used.
   * For an error status it does not throw: the body follows, to `failure`.
   */
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** An error status with its body (at most 64 KiB of it). Returns what it means. */
  failure(status: number, body: Uint8Array): UpstreamFailure;
  /**
   * Bytes arrived. Returns what may go to the client now (null or empty: nothing). Throws UpstreamFailure on a broken reply.
   * `following`: as many bytes have arrived with these and are handed over next; what is given out is collected until that is 0.
   */
  data(chunk: Uint8Array, following?: number): Uint8Array | null;
  /** The reply is complete. Throws UpstreamFailure when it ended too early. */
  end(): ReplyEnd;
  /** The reply was cut by us (client gone and drain bound reached): what was produced so far, as measured. */
  cut(): ReplyEnd;
  /** True once no further byte can change the end (`[DONE]`, or output past the budget): call `end()` at once and let the rest go. */
  readonly finished?: boolean;
}

export interface ReplyEnd {
  /** null: the provider reported none. */
  readonly usage: Usage | null;
  /** `free`: the work failed by its own words (empty, error finish), nothing is charged. `over_cap`: the output ran past the budget and was cut. */
  readonly outcome: 'complete' | 'free' | 'over_cap';
  /** Usage was measured by us, not reported. */
  readonly estimated: boolean;
  /** Why the work ended, in the provider's words; null when it did not say. */
  readonly finishReason: string | null;
  /** What is wrong with the reply or its usage, for the provider's flags. */
  readonly flags: readonly ProviderFlag[];
  /** The protocol's own rest of the reply, handed back to it after settlement. */
  readonly tail: unknown;
}

/** Non-compliance that is counted per provider. */
export type ProviderFlag = 'usage_missing' | 'usage_invalid' | 'usage_implausible' | 'over_cap' | 'malformed_reply';

/**
 * One attempt failed. `retryable`: another provider may do better.
 * `blame`: `provider` counts against its health, `request` means the request itself was refused (4xx) and passes through.
 */
export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure';
  readonly status: number | null;
  readonly retryable: boolean;
  readonly blame: 'provider' | 'request';
  /** The provider's own words, safe to show; null when it gave none. */
  readonly detail: string | null;
  readonly retryAfterS: number | undefined;
  constructor(
    message: string,
    options: {
      status?: number | null;
      retryable: boolean;
      blame: 'provider' | 'request';
      detail?: string | null;
      retryAfterS?: number | undefined;
      cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = options.status ?? null;
    this.retryable = options.retryable;
    this.blame = options.blame;
    this.detail = options.detail ?? null;
    this.retryAfterS = options.retryAfterS;
  }
}

/** One call of one primitive: a small neutral header around a native exchange. */
export interface Call {
  /** Call id = lock id = generation id. */
  readonly id: string;
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** The name the consumer called. */
  readonly service: string;
  readonly stream: boolean;
  readonly startedAt: number;
  /** At most three, in the order of attempts. The lock is the highest of their estimates. */
  readonly candidates: readonly Candidate[];
  readonly exchange: Exchange;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  /** The consumer's `metadata`, for logs. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The consumer's W3C `traceparent` header, as it came. */
  readonly traceparent: string | null;
  /** Wall-clock limit of the whole call in milliseconds. */
  readonly timeoutMs: number;
  readonly wantsReceipt: boolean;
}

/** A pipeline stage: a call in, an async stream of frames out. */
export type Handler = (call: Call, signal: AbortSignal) => AsyncIterable<Frame, void, undefined>;

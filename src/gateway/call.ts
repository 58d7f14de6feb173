import type { UpstreamFailure } from '#wire';
import type { Frame, CancelSignal, MicroUsd, Price, Usage } from '#billing';
import type { ModelFacts, Primitive, AgentFacts, MediaFacts } from '#config';
import type { CallerMember } from './acting.ts';
import type { HeldByCall } from './call-request.ts';
import type { PiecedBody } from './pieced-body.ts';
import type { AccountRates, CallerBudget, Rates } from './limits/caller-limits.ts';
import type { PaymentAttempt } from './payments/payments.ts';
import type { PricedFacts } from './quotes/quotes.ts';
import type { UpstreamExchange } from './upstream.ts';

/**
 * The caller: one account, and the credential of the request. A caller with neither key nor wallet has an access token.
 */
export interface Caller {
  /** Ledger account of the consumer, for example `tollgate:local:dev` or `solana:<address>`. */
  readonly account: string;
  /** null for a caller that signed in with a wallet or an access token. */
  readonly key: CallerKey | null;
  /** null for a caller with an API key or an access token. */
  readonly wallet: CallerWallet | null;
  /** The running call for which an agent makes this call, paid from the lock of that call; absent for other callers. */
  readonly run?: CallerRun;
  /**
   * Set for a caller without a credential. It may only read public data and pay for a request. `from`: the network that
   * its rate is counted under, as it has no account.
   */
  readonly anonymous?: { readonly from: string };
  /**
   * Set for a caller with a payment and no credential. For this one request, `account` is that of the paying wallet.
   * `from`: see `anonymous`.
   */
  readonly paying?: { readonly from: string };
  /**
   * Set for a caller with the cookie of a web session. A cookie can be stolen, so operations that affect more than one
   * call need a proof in the request itself, see requireFreshSignature.
   */
  readonly session?: CallerSession;
  /**
   * The budgets that its calls are counted in; absent for none. A key without a limit has a budget that no call can
   * exceed, so that its spending is counted.
   */
  readonly budgets?: readonly CallerBudget[];
  /** A member who acts for the account; absent for callers of the account itself. */
  readonly member?: CallerMember;
  /**
   * The rate limits that were set for its key and for its account, which all callers of the account share; absent where
   * nobody has set any.
   */
  readonly rates?: { readonly key: Rates | null; readonly account: AccountRates | null };
}

interface CallerSession {
  /** Public identifier of the session. */
  readonly id: string;
  /** `development`: signed in without a proof, to the account with play money. Only possible on this machine. */
  readonly by: 'wallet' | 'api_key' | 'development';
}

/** Whether a caller uses play money. */
export const isDevelopment = ({ key, session, member }: Pick<Caller, 'key' | 'session' | 'member'>): boolean =>
  key?.development === true || session?.by === 'development' || member?.development === true;

/** A running call that pays for calls made under it from its own lock, see `lendable`. */
interface CallerRun {
  /** Id of that call. */
  readonly parent: string;
}

/**
 * The account of calls that the gateway makes for itself, such as requests for the lists of MCP servers. It holds no
 * money.
 */
export const OWN_ACCOUNT = 'tollgate:gateway';

/** The account of callers without a credential. It never holds money. */
export const ANONYMOUS_ACCOUNT = 'tollgate:anonymous';

/** The sign-in message that a wallet signed for this request. */
interface CallerWallet {
  /** CAIP-10 id, with the network that the message names. */
  readonly caip10: string;
  /** The nonce of the message; null for none. Sensitive operations need an unused nonce that this gateway issued. */
  readonly nonce: string | null;
}

/** The part of an API key that the pipeline acts on. */
export interface CallerKey {
  /** Public identifier of the key: the hash it is stored under. */
  readonly hash: string;
  readonly label: string;
  /** Keys of the development account. */
  readonly development: boolean;
  /** Service names the key may use; null for all. */
  readonly allowedServices: readonly string[] | null;
  /** The member of the account that owns the key; absent for a key of the account itself. */
  readonly member?: string;
  /**
   * The key belongs to a member, or has a spending limit, a rate, an expiry or a list of services. Absent: none of
   * these.
   */
  readonly restricted?: true;
}

export interface Provider {
  /** Public key: base58 Ed25519, or an EVM address in lower case. */
  readonly id: string;
  readonly name: string;
}

/** The address of an offer: reached by the gateway itself, or through the tunnel that its provider dialled in with. */
export type Endpoint = DirectEndpoint | TunnelEndpoint;

/** Header values may be secrets: never logged, never sent to a consumer. */
export interface DirectEndpoint {
  readonly kind: 'direct';
  /** Base URL without a trailing slash, up to but without the path of the primitive (`…/v1`). */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** By path: the headers that replace `headers` for requests to that path. */
  readonly headersAt?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface TunnelEndpoint {
  readonly kind: 'tunnel';
  /** Public key of the provider whose proxy serves it. The proxy may be connected to any gateway. */
  readonly provider: string;
  /** Path of the service inside the tunnel, see servicePath. The path of the request is appended to it. */
  readonly basePath: string;
}

/** One provider's offer of one service at one price: what routing chooses from. */
export interface Offer {
  /** Unique over all offers: `<primitive>/<provider id>:<service name>`. */
  readonly id: string;
  /** The name that consumers call it by. */
  readonly service: string;
  readonly primitive: Primitive;
  readonly provider: Provider;
  readonly price: Price;
  /** Prices of parts of the service that have their own price: the name of a tool, tier or resolution to its price. */
  readonly variants: Readonly<Record<string, Price>>;
  /** The amount that is locked if the use of a call is not known beforehand (tokens or seconds). Otherwise null. */
  readonly priceCap: MicroUsd | null;
  readonly endpoint: Endpoint;
  readonly displayName: string;
  /** The provider's words; may be empty. */
  readonly description: string;
  readonly createdAt: number;
  /** Facts of a model offer; null on other primitives. */
  readonly model: ModelFacts | null;
  /** Facts of an agent offer; null on other primitives. */
  readonly agent: AgentFacts | null;
  /** Facts of an image or video offer; null on other primitives. */
  readonly media: MediaFacts | null;
  /**
   * Set after a large rise of its price: the price before, and until when (epoch milliseconds) calls have to accept the
   * new one explicitly.
   */
  readonly raised?: { readonly until: number; readonly was: PricedOffer };
}

/** All of an offer that decides what a call costs. */
export type PricedOffer = Pick<Offer, 'price' | 'variants' | 'priceCap' | 'agent'>;

/** An offer that this call may be sent to, with the most that the call may cost there. */
export interface Candidate {
  readonly offer: Offer;
  /** The price of this call: that of the called part if it has one, else that of the offer. */
  readonly price: Price;
  readonly estimate: MicroUsd;
}

/** A request upstream, for one attempt. Header names are lower case. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Path below the endpoint's base URL, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | PiecedBody | null;
  /** The reply may begin late or pause for long: no timeout applies to its head or to its pauses. Default false. */
  readonly patient?: boolean;
  /**
   * The request only listens for events, for as long as its client likes, and causes no work. It is patient, and does
   * not use the connections that calls need. Default false.
   */
  readonly listens?: boolean;
}

/**
 * One request and the reader of its reply, for each offer that is tried. `singleRequest` turns it into a provider
 * adapter. One RequestAdapter serves all attempts of its call.
 */
export interface RequestAdapter {
  request(offer: Offer): UpstreamRequest;
  /** A reader for one attempt. */
  reader(offer: Offer): ReplyReader;
  /**
   * The offer refused the request with this status and body (at most 64 KiB of it). Returns true if `request` now gives
   * another form of the same request, to send to the same offer. It returns true only a few times for each offer.
   * Absent: never.
   */
  reform?(offer: Offer, status: number, body: Uint8Array): boolean;
}

/** Sends a request to the offer of the attempt. Every exchange ends with the attempt. */
export type Send = (request: UpstreamRequest) => UpstreamExchange;

/**
 * The native side of a call, made by its protocol. It talks to the provider through `send` alone. The pipeline carries
 * it and never opens it. One ProviderAdapter serves all attempts of its call, one after the other.
 */
export interface ProviderAdapter<T extends ProviderStream = AsyncGenerator<Uint8Array, ReplyEnd, undefined>> {
  /**
   * Talks to `offer` and gives out bytes for the client, in any framing that its protocol reads back. Returns how it
   * ended. Throws UpstreamFailure; another offer is tried only while nothing was given out. When the call times out, or
   * its client has left and the time for draining is over, all exchanges fail and `signal` aborts. A provider adapter
   * that has not ended by then is free. Exchanges of `detached` may outlive the attempt: the user of `detached` has to
   * end each of them.
   */
  startAttempt(offer: Offer, send: Send, signal: AbortSignal, detached: Send): T;
  /**
   * The work always ends with its call, or the call ends as `pending`: no task keeps its lock. Such a call, if it can
   * cost nothing, gets no lock, only a record. Default false.
   */
  readonly endsWithCall?: boolean;
  /** Called with the prepared call before it runs, for provider adapters that tell the provider about the call. */
  begin?(call: Call): void;
  /** Billing has finished with the lock of the call. A client may still be reading. Not called for a free call. */
  resolved?(state: 'settled' | 'released' | 'pending' | 'unresolved'): void;
}

/** The running attempt. */
export interface ProviderStream {
  /** Bytes for the client as they arrive, possibly empty; at the end how it ended. Rejects with UpstreamFailure. */
  next(): Promise<IteratorResult<Uint8Array, ReplyEnd>>;
  /** Stops it before its end. */
  return?(end: ReplyEnd): Promise<unknown>;
  /** Status of the reply, if the stream reads a single reply. */
  readonly status?: number | undefined;
  /**
   * The gateway ended the stream. Returns what the reply had used so far; null if it was broken or had not begun.
   * Absent where the stream may be waiting for its consumer: the call is then free, and its provider is not blamed.
   */
  cut?(cut: Cut): ReplyEnd | null;
}

/**
 * Reads one upstream reply: bytes in, bytes for the client out, usage at the end. Methods run in this order, on one
 * reply.
 */
export interface ReplyReader {
  /**
   * The status line and headers arrived. Throws UpstreamFailure when the reply cannot be used.
   * For an error status it does not throw: the body follows, to `failure`.
   */
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** An error status with its body (at most 64 KiB of it). Returns what it means. */
  failure(status: number, body: Uint8Array): UpstreamFailure;
  /**
   * Bytes arrived, in one piece or more. Returns what may go to the client now (null or empty: nothing). Throws
   * UpstreamFailure on a broken reply.
   */
  data(chunks: readonly Uint8Array[]): Uint8Array | null;
  /** The reply is complete. Throws UpstreamFailure when it ended too early. */
  end(): ReplyEnd;
  /**
   * Called before `end`, if present. For a reply that takes long to parse, resolves with its end, made in another
   * thread. null: call `end`. Rejects with the errors that `end` throws.
   */
  endElsewhere?(): Promise<ReplyEnd> | null;
  /** Number of bytes of the reply that it holds in memory until its end; absent if it passes them on. */
  readonly kept?: number | undefined;
  /**
   * The gateway ended the reply. Returns what was produced so far, as the provider claimed it or else as measured;
   * `free` if that is nothing. Also called after `data` or `end` threw a failure that is `tooLarge`. Throws
   * UpstreamFailure if the reply was broken before.
   */
  cut(cut: Cut): ReplyEnd;
  /**
   * True once no further byte can change the end (`[DONE]`, or output past the budget). Then call `end()` at once and
   * ignore the rest.
   */
  readonly finished?: boolean;
}

/** Why the gateway ends an unfinished reply that has not failed. */
export interface Cut {
  /** The client left or cancelled; the call timed out; the reply is larger than the gateway accepts. */
  readonly reason: 'cancelled' | 'timeout' | 'too_large';
  /** The reason in words, to follow "The reply was cut: ". */
  readonly message: string;
}

export interface ReplyEnd {
  /** null: the provider reported none. */
  readonly usage: Usage | null;
  /**
   * `cut`: the gateway ended it early, see Cut; the produced part is charged. `free`: the work failed according to the
   * reply (empty, or finished with an error); nothing is charged. `over_cap`: the output exceeded the cap and was cut.
   * `pending`: the work goes on; its lock is kept until a call continues the work, its end is seen, or the lock
   * expires.
   */
  readonly outcome: 'complete' | 'cut' | 'free' | 'over_cap' | 'pending';
  /** The gateway measured the usage. The provider did not report it. */
  readonly estimated: boolean;
  /** Why the work ended, in the provider's words; null when it did not say. */
  readonly finishReason: string | null;
  /** The most that is charged, if less came than the price is for, such as a smaller image. Default: no bound. */
  readonly costMax?: MicroUsd | null;
  /** Faults of the reply or its usage, to be counted as flags of the provider. */
  readonly flags: readonly ProviderFlag[];
  /** The provider's breakdown of its tokens, for the record of the call. */
  readonly details?: Readonly<{ cached: number; cacheWritten: number; reasoning: number }>;
  /** The protocol's data for the rest of the reply. The protocol gets it back after settlement. */
  readonly tail: unknown;
  /** Of a ReplyReader: bytes for the client that the end has revealed. They are given out before the settlement. */
  readonly rest?: Uint8Array | null;
}

/** Violations that are counted per provider. */
export const PROVIDER_FLAGS = [
  'usage_missing',
  'usage_invalid',
  'usage_implausible',
  'over_cap',
  'malformed_reply',
] as const;
export type ProviderFlag = (typeof PROVIDER_FLAGS)[number];

/**
 * The usage of a call whose answer was too large to read, so that the provider's report is lost: the call, the time,
 * and one token for each four bytes. An offer charges only the meters that it has a price for.
 */
export const measuredUse = ({ received }: UpstreamFailure, durationMs: number): Usage => ({
  call: 1n,
  completion: BigInt(Math.ceil(received / 4)),
  second: BigInt(Math.ceil(durationMs / 1000)),
});

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
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The same moment on a monotonic clock, in milliseconds. Durations are counted from it. */
  readonly begunAt: number;
  /** At most three, in the order of attempts. The lock is the highest of their estimates. */
  readonly candidates: readonly Candidate[];
  readonly exchange: ProviderAdapter<ProviderStream>;
  /** The called part of the service: the name of a tool. null for the whole service. */
  readonly operation: string | null;
  /** The free method (`tools/list`) of a call that costs nothing and skips billing; null for a billed call. */
  readonly free: string | null;
  /** Id of the pending call that this one continues. One step releases its lock and makes the lock of this one. */
  readonly continues: string | null;
  /** Id of the running call from whose lock this one is paid; null if it is paid from the account. */
  readonly parent: string | null;
  /** Locked on top of the estimate, for calls that are made under this one. */
  readonly lendable: MicroUsd;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  /** The consumer's `metadata`, for logs. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /**
   * The protocol's facts about the request, for attributes of the call's span: `mcp.protocol.version`,
   * `jsonrpc.request.id`.
   */
  readonly facts?: (() => Readonly<Record<string, string>>) | undefined;
  /** The consumer's W3C `traceparent` header, unchanged. */
  readonly traceparent: string | null;
  /** Wall-clock limit of the whole call in milliseconds. */
  readonly timeoutMs: number;
  readonly wantsReceipt: boolean;
  /** Id of the quote that it uses; absent for none. */
  readonly quote?: string;
  /** See CallRequest. */
  readonly priced?: ((offer: Offer) => PricedFacts) | undefined;
  /** The payment that came with the request; null or absent for none. */
  readonly payment?: PaymentAttempt | null;
  /** Called before the first provider is asked. The money of the call is then locked, unless it costs nothing. */
  readonly onLocked?: (() => void) | undefined;
  /**
   * The work goes on when the client leaves. So the reply is read to its end and paid, within the call's timeout.
   * Default false.
   */
  readonly outlivesClient?: boolean;
  /** Is given back when the call has ended, or did not begin; absent for none. */
  readonly memory?: HeldByCall | undefined;
}

/** A pipeline stage: a call in, an async stream of frames out. */
export type Handler = (call: Call, signal: CancelSignal) => AsyncIterable<Frame, void, undefined>;

import type { UpstreamFailure } from '#wire';
import type { Frame, Leaving, MicroUsd, Price, Usage } from '#billing';
import type { ModelFacts, Primitive, AgentFacts, MediaFacts } from '#config';
import type { CallerMember } from './acting.ts';
import type { CallerBudget, Rates } from './limits/caller-limits.ts';
import type { PaymentSlip } from './payments/payments.ts';
import type { PricedFacts } from './quotes/quotes.ts';
import type { UpstreamExchange } from './upstream.ts';

/** The caller: one account, and the credential it came with. With neither key nor wallet it is an access token. */
export interface Caller {
  /** Ledger account of the consumer, for example `tollgate:local:dev` or `solana:<address>`. */
  readonly account: string;
  /** null for a caller that signed in with a wallet or an access token. */
  readonly key: CallerKey | null;
  /** null for a caller with an API key or an access token. */
  readonly wallet: CallerWallet | null;
  /**
   * The running call on whose behalf an agent calls, drawing on its lock; absent for callers who act for themselves.
   */
  readonly run?: CallerRun;
  /**
   * Came without a credential, and may do nothing but look and pay. `from`: what its rate is counted under, in
   * place of an account.
   */
  readonly anonymous?: { readonly from: string };
  /**
   * Came without a credential but with a payment: the account is the paying wallet's, for the one request that is
   * paid. `from`: as above.
   */
  readonly paying?: { readonly from: string };
  /**
   * Came with the cookie of a web session, which anybody could have who steals it: acts that reach beyond one call
   * need a proof with the request itself, see requireFreshSignature.
   */
  readonly session?: CallerSession;
  /**
   * Its calls count in these. A key without a limit has a budget that no call can exceed, so that its use is counted.
   * Absent: nothing.
   */
  readonly budgets?: readonly CallerBudget[];
  /** A member who acts for the account; absent for callers of the account itself. */
  readonly member?: CallerMember;
  /** Rates of its key, and of its account with all that calls for it; absent where nobody has set any. */
  readonly rates?: { readonly key: Rates | null; readonly account: Rates | null };
}

interface CallerSession {
  /** Public identifier of the session. */
  readonly id: string;
  /** `development`: nothing was proved. It is the account of play money, on this machine alone. */
  readonly by: 'wallet' | 'api_key' | 'development';
}

/** Whether a caller uses play money. */
export const isDevelopment = ({ key, session, member }: Pick<Caller, 'key' | 'session' | 'member'>): boolean =>
  key?.development === true || session?.by === 'development' || member?.development === true;

/** A call in whose course other calls are made: they are paid from its lock, see `lendable`. */
interface CallerRun {
  /** Id of that call. */
  readonly parent: string;
}

/**
 * The account of calls that the gateway makes for itself, with no client behind them: lists of what servers have.
 * It holds no money.
 */
export const OWN_ACCOUNT = 'tollgate:gateway';

/** The account of callers without a credential: it holds no money and is never given any. */
export const ANONYMOUS_ACCOUNT = 'tollgate:anonymous';

/** The sign-in message that a wallet signed for this request. */
interface CallerWallet {
  /** CAIP-10 id with the network that was signed on. */
  readonly caip10: string;
  /**
   * The nonce of the message; null when it has none. What is sensitive needs one that this gateway issued and
   * nobody has used.
   */
  readonly nonce: string | null;
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
  /** The member of the account that it is of; absent for a key of the account itself. */
  readonly member?: string;
  /** It has a spending limit, a rate, an expiry or a list of services, or is of a member. Absent: none of these. */
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
  /** In place of `headers` for requests of a path, where these differ. */
  readonly headersAt?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface TunnelEndpoint {
  readonly kind: 'tunnel';
  /** Public key of the provider whose proxy serves it, on whichever gateway it is connected to. */
  readonly provider: string;
  /** Path of the service inside the tunnel, see servicePath; the request's own path is appended. */
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
  /**
   * Prices of parts of the service that have their own: a tool by its name, a tier or resolution by its name. Empty
   * for most.
   */
  readonly variants: Readonly<Record<string, Price>>;
  /**
   * The most that one call costs where what it uses is not known before (tokens or seconds of a tool or an agent):
   * its lock. null where the price itself says it.
   */
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
   * Its price jumped lately: what it cost before, and until when (epoch milliseconds) calls have to accept the new one.
   */
  readonly raised?: { readonly until: number; readonly was: PricedOffer };
}

/** All of an offer that decides what a call costs. */
export type PricedOffer = Pick<Offer, 'price' | 'variants' | 'priceCap' | 'agent'>;

/** An offer that this call may be sent to, with what the call may cost there at most. */
export interface Candidate {
  readonly offer: Offer;
  /** The price of this call: the offer's, or that of the part of it that is called. */
  readonly price: Price;
  readonly estimate: MicroUsd;
}

/** A request upstream, for one attempt. Header names are lower case. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Path below the endpoint's base URL, with a leading slash. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string | null;
  /** The reply may take long or say nothing for long: neither its head nor its silence times out. Default false. */
  readonly patient?: boolean;
  /**
   * Nothing is done for this request: it only listens, for as long as its client likes. It is patient, and takes
   * none of the connections that calls need. Default false.
   */
  readonly listens?: boolean;
}

/**
 * One request and the reader of its reply, for each offer that is asked: `oneRequest` makes the conversation of it.
 * One Exchange serves all attempts of its call.
 */
export interface Exchange {
  request(offer: Offer): UpstreamRequest;
  /** A reader for one attempt. */
  reader(offer: Offer): ReplyReader;
  /**
   * The offer refused the request with this status and body (at most 64 KiB of it). True: `request` now gives
   * another form of the same request, which is sent to the same offer. An exchange says so a few times for each
   * offer. Absent: never.
   */
  reform?(offer: Offer, status: number, body: Uint8Array): boolean;
}

/** Sends a request of a conversation to the offer that it is with. Every exchange ends with the conversation. */
export type Send = (request: UpstreamRequest) => UpstreamExchange;

/**
 * The native side of a call, made by its protocol: it talks to the provider itself, through `send` alone. The
 * pipeline carries it and never opens it. One Conversation serves all attempts of its call, one after the other.
 */
export interface Conversation<T extends Talk = AsyncGenerator<Uint8Array, ReplyEnd, undefined>> {
  /**
   * Talks to `offer` and gives out bytes for the client, of any framing that its protocol reads back. Returns how
   * it ended. Throws UpstreamFailure; another offer is tried only while nothing was given out. When the call's time
   * is over, or its client gone and the drain bound reached, all exchanges fail and `signal` aborts: what has not
   * ended by then is free. What `detached` sends may outlive the conversation, and so may `detached`: whoever uses
   * it ends every exchange by himself.
   */
  converse(offer: Offer, send: Send, signal: AbortSignal, detached: Send): T;
  /**
   * The work always ends with its call, or the call ends as `pending`: no task keeps its lock. Where such a call costs
   * nothing, it has a record alone. Default false.
   */
  readonly endsWithCall?: boolean;
  /** The call as it was prepared, before it is run: for what is told to the provider of it. */
  begin?(call: Call): void;
  /** Billing is done with the lock of the call, whoever still reads. Not called for a free one. */
  resolved?(state: 'settled' | 'released' | 'pending' | 'unresolved'): void;
}

/** A conversation under way. An async generator is one. */
export interface Talk {
  /** Bytes for the client as they come, which may be none; at last how it ended. Rejects with UpstreamFailure. */
  next(): Promise<IteratorResult<Uint8Array, ReplyEnd>>;
  /** Breaks it off before its end. `end` is not read. */
  return?(end: ReplyEnd): Promise<unknown>;
  /** Status of the reply, where the talk is the reading of a single one. */
  readonly status?: number | undefined;
  /**
   * It was ended by the gateway: what the reply had used; null where it was broken before, or had not begun. Absent
   * where a consumer may be what the talk waits for: then it is free, and its provider is not blamed.
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
   * Asked before `end`, where it is there: of a reply that takes long to read, its end, made by another thread.
   * Null: call `end`. Rejects as `end` throws.
   */
  endElsewhere?(): Promise<ReplyEnd> | null;
  /** Bytes of the reply that it keeps until its end; absent where it passes them on. */
  readonly kept?: number | undefined;
  /**
   * The reply was ended by us: what was produced so far, as it was claimed or else measured; `free` where that is
   * nothing. Also after `data` or `end` threw a failure that is `tooLarge`. Throws UpstreamFailure where the reply
   * had broken before.
   */
  cut(cut: Cut): ReplyEnd;
  /**
   * True once no further byte can change the end (`[DONE]`, or output past the budget): call `end()` at once and
   * let the rest go.
   */
  readonly finished?: boolean;
}

/** Why the gateway ends a reply that has not ended by itself, though nobody failed. */
export interface Cut {
  /** The client left or cancelled; the call's clock ran out; the reply is larger than the gateway takes. */
  readonly reason: 'cancelled' | 'timeout' | 'too_large';
  /** The same for people, to follow "The reply was cut: ". */
  readonly message: string;
}

export interface ReplyEnd {
  /** null: the provider reported none. */
  readonly usage: Usage | null;
  /**
   * `cut`: it was ended before its own end, see Cut; what was produced is charged. `free`: the work failed by its
   * own words (empty, error finish), nothing is charged. `over_cap`: the output ran past the budget and was cut.
   * `pending`: the work is not at its end; the lock is kept for the call that goes on with it or for whoever sees
   * the end, or until it expires.
   */
  readonly outcome: 'complete' | 'cut' | 'free' | 'over_cap' | 'pending';
  /** Usage was measured by us, not reported. */
  readonly estimated: boolean;
  /** Why the work ended, in the provider's words; null when it did not say. */
  readonly finishReason: string | null;
  /** Faults of the reply or its usage, for the provider's flags. */
  readonly flags: readonly ProviderFlag[];
  /** Parts of the tokens that the provider claims, for the record of the call. */
  readonly details?: Readonly<{ cached: number; cacheWritten: number; reasoning: number }>;
  /** The protocol's own rest of the reply, handed back to it after settlement. */
  readonly tail: unknown;
  /** Of a ReplyReader: bytes for the client that came to light with the end; given out ahead of the settlement. */
  readonly rest?: Uint8Array | null;
}

/** Non-compliance that is counted per provider. */
export const PROVIDER_FLAGS = [
  'usage_missing',
  'usage_invalid',
  'usage_implausible',
  'over_cap',
  'malformed_reply',
] as const;
export type ProviderFlag = (typeof PROVIDER_FLAGS)[number];

/**
 * The use of a call whose answer was too large to be read, and the provider's report with it: the call, the
 * time, and a token for each four bytes. Of these an offer is charged what it has a price for.
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
  /** The same moment in milliseconds that only go on: what durations are counted from. */
  readonly begunAt: number;
  /** At most three, in the order of attempts. The lock is the highest of their estimates. */
  readonly candidates: readonly Candidate[];
  readonly exchange: Conversation<Talk>;
  /** The part of the service that is called: the name of a tool. null for the whole. */
  readonly operation: string | null;
  /**
   * Why this call costs nothing and goes past billing: the method that is free (`tools/list`). null for a call that
   * is billed.
   */
  readonly free: string | null;
  /**
   * Id of the pending call that this one goes on with: its lock is given back in the same step in which this one is
   * made.
   */
  readonly continues: string | null;
  /** Id of the running call on whose lock this one draws; null for one that is paid from the account. */
  readonly parent: string | null;
  /** Locked on top of the estimate, for calls that are made under this one. */
  readonly lendable: MicroUsd;
  /** Calls with the same key prefer the provider that served the last one. */
  readonly stickyKey: string | null;
  /** The consumer's `metadata`, for logs. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /**
   * Facts of the protocol about its request, as attributes of the call's span: `mcp.protocol.version`,
   * `jsonrpc.request.id`.
   */
  readonly facts?: (() => Readonly<Record<string, string>>) | undefined;
  /** The consumer's W3C `traceparent` header, as it came. */
  readonly traceparent: string | null;
  /** Wall-clock limit of the whole call in milliseconds. */
  readonly timeoutMs: number;
  readonly wantsReceipt: boolean;
  /** Id of the quote that it uses; absent for none. */
  readonly quote?: string;
  /** See CallRequest. */
  readonly priced?: ((offer: Offer) => PricedFacts) | undefined;
  /** The payment that came with the request; null or absent for none. */
  readonly payment?: PaymentSlip | null;
  /**
   * The work goes on when the client leaves, so it is heard to its end, and paid, as long as the call may take.
   * Default false.
   */
  readonly outlivesClient?: boolean;
}

/** A pipeline stage: a call in, an async stream of frames out. */
export type Handler = (call: Call, signal: Leaving) => AsyncIterable<Frame, void, undefined>;

import { randomBytes } from 'node:crypto';
import type { LockResolution } from '#billing';
import type {
  BilledEnd,
  CutReply,
  CancelSignal,
  EndFrame,
  Frame,
  MicroUsd,
  ReplyPiece,
  Price,
  ServiceTiers,
  Usage,
} from '#billing/amounts';
import type { Primitive, Config } from '#config';
import type { UpstreamFailure } from '#wire';
import type { PaymentAttempt } from '#payments';
import type { Caller, Tags } from '#accounts';
import { type DirectEndpoint, type Offer, stopsAt } from '#catalog';
import type { PromptPrefix, RepeatedPrompt } from './affinity.ts';
import type { RoutePreferences } from './preferences.ts';
import type { ShownClaim } from './claim-density.ts';
import type { NamedFlags, RaisedFlag } from './flags.ts';
import type { Send } from './upstream.ts';

/**
 * One call of one primitive: a small neutral header around the adapter of its protocol. `R` is the result with which
 * the adapter ends, `D` are the pieces that it gives out.
 */
export interface Call<R = unknown, D extends ReplyPiece = ReplyPiece> {
  /** Call id = lock id = generation id. */
  readonly id: string;
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  readonly session?: string | undefined;
  /** The name the consumer called. */
  readonly service: string;
  readonly stream: boolean;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The moment of `startedAt` on a monotonic clock, in milliseconds. Durations are counted from it. */
  readonly begunAt: number;
  /** In the order of attempts, see planAttempts. The lock is the highest of their estimates. */
  readonly candidates: readonly Candidate[];
  readonly adapter: ProviderAdapter<R, D>;
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
  /** The beginning of its prompt, for the choice of the next such call's offer; null or absent if nothing is chosen. */
  readonly prefix?: PromptPrefix | null;
  /** The consumer's `metadata`, for logs. */
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The consumer's names of the call, for its sums; absent without any. */
  readonly tags?: Tags | undefined;
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
  /** Id of the approval by which a person has accepted it; absent for none. */
  readonly approval?: string;
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
  /** See RoutePreferences.contentFallbacks. Default false. */
  readonly contentFallbacks?: boolean;
  /** Memory that is given back when the call has ended, or did not begin; absent for none. */
  readonly memory?: HeldByCall | undefined;
  /** A repeat of its request gets its reply. Set before it runs; default false. */
  isRepeatable?: boolean;
  /** The offer of the attempt that runs, or ran last. Set when an attempt begins. */
  currentOffer?: Offer;
  /** Set at the first attempt that fails, for the record of the call. */
  failedAttempts?: FailedAttempt[];
}

/** An attempt that failed, as the record of its call has it. */
interface FailedAttempt {
  readonly provider: string;
  readonly service: string;
  /** The reason, in words that clients may read. */
  readonly error: string;
  /** The status of the provider's answer; null without one. */
  readonly status: number | null;
  readonly blame: UpstreamFailure['attributedTo'];
  readonly durationMs: number;
}

/** An offer that this call may be sent to, with the most that the call may cost there. */
export interface Candidate {
  readonly offer: Offer;
  /** The price of this call: that of the called part if it has one, else that of the offer. */
  readonly price: Price;
  readonly estimate: MicroUsd;
  /** The offer's prices by service tier. `price` is that of the tier that the call asks for. Absent for one price. */
  readonly serviceTiers?: ServiceTiers | undefined;
  /** See CallRequest.variant. */
  readonly variant?: string | undefined;
  /** The call goes out with the consumer's own key at the provider, which charges the consumer; absent for others. */
  readonly ownKey?: { readonly endpoint: DirectEndpoint; readonly feeBps: number };
}

/** A pipeline stage: a call in, an async stream of frames out. */
export type Handler = (call: Call, signal: CancelSignal) => AsyncIterable<Frame, void, undefined>;

/** A request as a protocol hands it to the pipeline: neutral facts and the native provider adapter. */
export interface CallRequest<R = unknown, D extends ReplyPiece = ReplyPiece> {
  readonly primitive: Primitive;
  readonly caller: Caller;
  readonly requestId: string;
  /** The session of which this call is a part, for its record; default none. */
  readonly session?: string;
  /** The called name, then its fallbacks, as the consumer wrote them. */
  readonly targets: readonly string[];
  readonly preferences: RoutePreferences;
  readonly stickyKey: string | null;
  /**
   * Without a key that was served before, calls whose prompts begin alike prefer the offer that has this beginning in
   * its cache. Default: they are spread.
   */
  readonly repeats?: RepeatedPrompt | undefined;
  readonly images: number;
  readonly stream: boolean;
  readonly adapter: ProviderAdapter<R, D>;
  /** The called part of the service; default null, the whole service. */
  readonly operation?: string | null;
  /** The price of this call at `offer`; default the offer's own. */
  readonly price?: ((offer: Offer) => Price) | undefined;
  /**
   * The price of this call at an offer with its earlier prices, even if such a call was not sold then. Default:
   * `price`, or the offer's own price if that throws.
   */
  readonly priceBefore?: (offer: Offer) => Price;
  /**
   * The variant of its result that the request gets at an offer, such as `1K/high`; undefined for none in particular.
   * It is kept in the record, for the cost of the operator. Default: none.
   */
  readonly variant?: (offer: Offer) => string | undefined;
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
  /**
   * Names of the fields of the request that an offer would not get. Asked only if the consumer wants an offer that gets
   * all. Absent: an offer that does not take a field refuses the request, or the protocol has no such fields.
   */
  readonly lacks?: ((offer: Offer) => readonly string[]) | undefined;
  /** Of the offers of a target, those that may serve the request at all. Default: all. */
  readonly admitted?: ((offers: readonly Offer[]) => readonly Offer[]) | undefined;
  /** The name of the method, if its protocol's table makes it free; default null, a billed call. */
  readonly free?: string | null;
  /**
   * A free call of a server of tools that may be made by whoever may use all of the server, not just some of its tools.
   * Default: whoever may use one tool.
   */
  readonly whole?: boolean;
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
  readonly cap?: CostCap & { readonly cappedRequest: CallRequest };
  /** Wall-clock limit of the whole call; default the configured one. */
  readonly timeoutMs?: number;
  /**
   * The most that this call can use at `offer`, or, if that is not known, the most that it is charged. The request that
   * the adapter sends must not ask for more. Throws GatewayError `unprocessable` if the offer cannot serve this call:
   * `prepare` skips the offer, and throws that error when no offer is left.
   */
  readonly estimate: (offer: Offer) => Usage | ChargeCap;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The end user that the body names; default none. */
  readonly endUser?: string | null | undefined;
  readonly facts?: () => Readonly<Record<string, string>>;
  readonly traceparent: string | null;
  /** The consumer asked for a signed receipt in the reply. */
  readonly wantsReceipt: boolean;
  readonly payment?: PaymentAttempt | null;
  /**
   * Rejects with GatewayError if the caller has no room for what the call makes, such as one more task. `prepare` calls
   * it with the prepared call, after all checks of the request and before the call claims its quote. Default: no room
   * is needed.
   */
  readonly room?: (call: Call) => Promise<void>;
  readonly onLocked?: (() => void) | undefined;
  readonly outlivesClient?: boolean;
  readonly memory?: HeldByCall;
}

/** Memory that a request holds until its call has ended, such as files that were fetched for it. */
export interface HeldByCall {
  release(): void;
}

/**
 * The native side of a call, made by its protocol. It talks to the provider through `send` alone. The pipeline carries
 * it and never opens it. One ProviderAdapter serves all attempts of its call, one after the other.
 */
export interface ProviderAdapter<R = unknown, D extends ReplyPiece = Uint8Array> {
  /**
   * Talks to `offer`, and gives out what the client gets, in a form that its protocol reads back. Throws
   * UpstreamFailure; another offer is tried only while nothing was given out. When the call times out, or its client
   * has left and the time for draining is over, all exchanges fail and `signal` aborts. A provider adapter that has not
   * ended by then is free. Exchanges of `detached` may outlive the attempt: the user of `detached` has to end each.
   */
  startAttempt(offer: Offer, send: Send, signal: AbortSignal, detached: Send): ProviderStream<R, D>;
  /**
   * The work always ends with its call, or the call ends as `pending`: no task keeps its lock. Such a call, if it can
   * cost nothing, gets no lock, only a record. Default false.
   */
  readonly endsWithCall?: boolean;
  /** Whether an offer can go on with what was given out of a stream that broke off. Absent: none can. */
  goesOnAt?(offer: Offer): boolean;
  /**
   * Its work is one request, which ends when its connection is closed. Default false: the work is ended by its
   * protocol, or not at all.
   */
  readonly isOneRequest?: boolean;
  /** Called with the prepared call before it runs, for provider adapters that tell the provider about the call. */
  begin?(call: Call): void;
  /** Billing has finished with the lock of the call. A client may still be reading. Not called for a free call. */
  resolved?(state: 'settled' | 'released' | 'pending' | 'unresolved'): void;
}

/** The running attempt. An async generator is one. */
export interface ProviderStream<R = unknown, D extends ReplyPiece = Uint8Array> {
  /**
   * The next piece for the client as it arrives; null if the provider sent something that the client does not get. At
   * the end how it ended. Rejects with UpstreamFailure.
   */
  next(): Promise<IteratorResult<D | null, ReplyEnd<R>>>;
  /** Stops it before its end. Nobody uses what it returns. */
  return?(end: never): Promise<unknown>;
  /** Status of the reply, if the stream reads a single reply. */
  readonly status?: number | undefined;
  /** Its provider was asked for a stream, which begins before its work is done. Default false. */
  readonly streams?: boolean;
  /**
   * It waits for work with a lock that is ready, and its first step only says that the work begins. Times are counted
   * from that step. Default: the work begins with the attempt.
   */
  readonly waits?: boolean;
  /**
   * The gateway ended the stream. Returns what the reply had used so far; null if it was broken or had not begun.
   * Absent where the stream may be waiting for its consumer: the call is then free, and its provider is not blamed.
   */
  cut?(cut: Cut): Promise<ReplyEnd<R> | null> | ReplyEnd<R> | null;
}

/** A provider adapter that is an async generator. */
export interface GeneratedAdapter<R, D extends ReplyPiece = Uint8Array> extends ProviderAdapter<R, D> {
  startAttempt(...attempt: Parameters<ProviderAdapter['startAttempt']>): AsyncGenerator<D, ReplyEnd<R>, undefined>;
}

/** How an attempt ended. `R`: the result of its protocol. */
export interface ReplyEnd<R = unknown> extends BilledEnd<R> {
  /** Why the work ended, in the provider's words; null when it did not say. */
  readonly finishReason: string | null;
  /** Faults of the reply or its usage, to be counted as flags of the provider. */
  readonly flags: readonly RaisedFlag[];
  /** The provider's breakdown of its tokens, for the record of the call. */
  readonly details?: Readonly<{ cached: number; cacheWritten: number; reasoning: number }>;
  /** Set if the answer is text alone, and its provider claimed its tokens. */
  readonly shownClaim?: ShownClaim | undefined;
  /** The service tier in which the provider says that it served; null or absent if it does not say. */
  readonly serviceTier?: string | null;
}

/** Why the gateway ends an unfinished reply that has not failed. */
export interface Cut extends Pick<CutReply, 'message'> {
  readonly reason: Exclude<CutReply['reason'], 'shutdown' | 'gave_up'>;
  /** The operator's own provider has taken the whole request, so its input is paid although nothing may have come. */
  readonly own: boolean;
  /**
   * The end of a reply that was given up for its size, with the usage that it may have; absent for any other. It begins
   * with what arrived last, which the reader has seen.
   */
  readonly rest?: Buffer;
}

/** The most that a call is charged, whatever it uses. */
export interface ChargeCap {
  readonly costMax: MicroUsd;
}

/** The members of a request that determine its price at one offer. */
export type PricedFacts = Readonly<Record<string, string | number | boolean | null>>;

/** The quote that is to set the price of a call. */
export interface RequestedQuote {
  readonly id: string;
  /** True if the client did not name the quote itself. It is then ignored if it does not fit. */
  readonly implied: boolean;
}

/** The most that a call may cost together with all calls under it, as named in its request. */
export interface CostCap {
  readonly amount: MicroUsd;
  /** The name that the client used for the cap. Errors use it. */
  readonly name: string;
}

/**
 * Events of the pipeline. `started` comes once. Then each attempt gives `attemptStarted`, `firstByte`, and
 * `attemptFailed` or `flagged`. The last is `resolved` (billing has finished with the lock, possibly after the client
 * has left) or `failed` (there was no lock). `at` is on the clock of `call.begunAt`. A copy of a call with fewer
 * candidates counts as the same call.
 */
export interface CallObserver {
  started(call: Call): void;
  attemptStarted(call: Call, offer: Offer, at: number): void;
  /** The attempt waits for work, see ProviderStream.waits. `workBegins` follows. */
  idle(call: Call): void;
  /** The work of the attempt begins only now. */
  workBegins(call: Call, at: number): void;
  firstByte(call: Call, at: number): void;
  attemptFailed(call: Call, offer: Offer, failure: UpstreamFailure): void;
  /** `usage`: what is billed. */
  flagged(call: Call, offer: Offer, flags: NamedFlags, usage: Usage | null): void;
  resolved(call: Call, resolution: LockResolution): void;
  /**
   * There was no lock, because it was refused or because the call is free. A free call that was answered has `error`
   * null and its `end`. Has no effect on a call that was resolved.
   */
  failed(call: Call, error: unknown, end?: EndFrame | null): void;
  upstreamHeaders(call: Call): Readonly<Record<string, string>> | null;
  /** Number of calls that have started and not ended. */
  inFlight(): number;
}

const idPrefix = `gen-${randomBytes(9).toString('base64url').replaceAll('-', 'A').replaceAll('_', 'B')}`;
let idCounter = 0;

/**
 * An id that is unique over all processes: a random prefix for each process and a counter, which is cheaper than a UUID
 * for each call. It is built with join(), because V8 serialises objects with a concatenated string to JSON at half the
 * speed.
 */
export function newCallId(): string {
  return [idPrefix, (idCounter++).toString(36).padStart(6, '0')].join('');
}

/**
 * How long a provider that stops may still send its usage after the client has left, in milliseconds. It is behind the
 * last word, so the time is for the network, not for more words.
 */
const STOP_MS = 500;

/** Whether a call is read on at an offer although its client leaves, because its provider goes on and bills. */
export const isReadOn = ({ adapter, stream, outlivesClient, isRepeatable }: Call, offer: Offer): boolean =>
  adapter.isOneRequest === true && (outlivesClient === true || isRepeatable === true || !stopsAt(offer, stream));

/** The headers of a stream that is read on. */
export const READ_ON = { 'x-tollgate-stops': 'false' } as const;

/** How long a call is read on after its client has left, in milliseconds. */
export const drainMsOf = (call: Call, drainMs: number): number =>
  call.currentOffer === undefined || call.adapter.isOneRequest !== true || isReadOn(call, call.currentOffer)
    ? drainMs
    : Math.min(STOP_MS, drainMs);

/**
 * The longest time in milliseconds that a call goes on after its timeout. The gateway may read the provider's reply
 * further for its usage, and a client that stalls delays the end of the call and its settlement.
 */
export const callGraceMs = ({ billing, limits }: Pick<Config, 'billing' | 'limits'>): number =>
  Math.max(billing.drainMs, limits.clientStallMs);

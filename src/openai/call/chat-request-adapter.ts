import { isObject } from '#wire';
import type { Price } from '#billing/amounts';
import type { Dialect } from '#http';
import type { CapField, CapName } from '#config';
import { readCapRefusal, readFieldRefusal } from '#config/refused-cap';
import type { RequestAdapter, ReplyReader, UpstreamRequest } from '#call';
import { NO_REFUSALS, RefusedFields } from '#call/refused-fields';
import type { Offer } from '#catalog';
import {
  requestedCap,
  chatBudget,
  unseenTokens,
  withPrompt,
  type ChatBudget,
  learnBound,
  takenCap,
} from '../chat/request/chat-budget.ts';
import type { ChatPiece, ChatResult, ReplyContext } from '../chat/reply/chat-end.ts';
import { ChatReplyReader } from '../chat/reply/chat-reply-reader.ts';
import type { ChatBody } from '../chat/chat-schema.ts';
import { createChatStreamDecoder, createChatStreamReader } from '../stream/chat-stream-reader.ts';
import type { ChunkOutput } from '../stream/chunk-output.ts';
import { Continuation } from '../chat/reply/continuation.ts';
import type { SentRequest } from '../chat/request/altered-headers.ts';
import {
  asksUsageAlone,
  FOR_ANOTHER_ROUTER,
  forwardedBody,
  type ForwardedCap,
  readReasoningRefusal,
  STREAM_USAGE,
} from '../chat/request/forwarded-body.ts';
import { askedParts } from '../chat/price/asked-parts.ts';
import { chatExtras, type PaidExtra, refuseUnpaid } from '../chat/price/paid-extras.ts';
import {
  type AskedParts,
  linePriceAt,
  partsAt,
  priceAt,
  type PricedParts,
  provableTiers,
} from '../chat/price/priced-parts.ts';
import { promptPrefix, type RepeatedPrompt } from '../chat/request/prompt-prefix.ts';
import { measurePrompt, type PromptSize } from '../chat/request/prompt-size.ts';

interface ChatRequestAdapterOptions {
  readonly body: ChatBody;
  readonly size: PromptSize;
  readonly requestId: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly replyBytesMax: number;
  /** The request is the line of a batch. */
  readonly isLine: boolean;
  /** Whether the caller's key says that streams which break off are gone on with; undefined if it says nothing. */
  readonly continues: boolean | undefined;
  readonly readFor: string;
  readonly dialect: Dialect | undefined;
  readonly output: (() => ChunkOutput<ChatPiece>) | undefined;
}

interface ChatRequestForm {
  readonly offer: Offer;
  /** Bytes and not text, of which the connection would make bytes and hold both. */
  readonly bytes: Buffer;
  readonly cap: ForwardedCap;
  readonly budget: ChatBudget;
  readonly dropped: readonly string[];
  readonly reasons: boolean;
  /** The size of the prompt that the offer gets, without the dropped fields. */
  readonly received: PromptSize;
}

/** The number of tokens in the cap, as the current offer has corrected it in this call. */
interface RefusedCap {
  readonly offer: Offer;
  /** The highest cap that the offer accepts for this prompt; Infinity if not known. */
  tokens: number;
  /** It accepts no more from other prompts either. */
  lasting: boolean;
  /** It refuses a cap that the client did not ask for. */
  isLeftOut: boolean;
  times: number;
}

/** The most refusals of one offer that lead to another bound of the cap. */
const BOUNDS_MAX = 3;

interface LockedBudget {
  readonly offer: Offer;
  readonly budget: ChatBudget;
}

const NONE: readonly LockedBudget[] = [];

/** The native side of a chat call. It is a class because each call creates one. */
export class ChatRequestAdapter implements RequestAdapter<ChatResult, ChatPiece>, SentRequest, RepeatedPrompt {
  /** The id that the reply carries. It is set after the call was prepared, and before it is run. */
  callId = '';
  readonly #options: ChatRequestAdapterOptions;
  readonly #headers: UpstreamRequest['headers'];
  #budgets: readonly LockedBudget[] = NONE;
  /** The latest form. One is enough, because nearly every call is sent once, to one offer. */
  #form: ChatRequestForm | null = null;
  #cap: RefusedCap | null = null;
  #refused = NO_REFUSALS;
  #requestedParts: AskedParts | null = null;
  #extras: readonly PaidExtra[] | null = null;
  #withoutReasoning: Offer | null = null;
  /** Made for the first stream that may be gone on with. */
  #continuation: Continuation | null = null;

  constructor(options: ChatRequestAdapterOptions) {
    this.#options = options;
    this.#headers = {
      'content-type': 'application/json',
      accept: options.body.stream === true ? 'text/event-stream' : 'application/json',
      'x-request-id': options.requestId,
    };
  }

  /** Whether an offer was asked. If so, the call is locked. */
  get isRequested(): boolean {
    return this.#form !== null;
  }

  get service(): string | null {
    return this.#form === null ? null : this.#form.offer.service;
  }

  get dropped(): readonly string[] {
    return this.#form?.dropped ?? [];
  }

  /** The cap at the latest offer if it is lower than the client's cap; else null. */
  get maxTokens(): number | null {
    const requestedTokens = requestedCap(this.#options.body);
    return this.#form === null || requestedTokens === null || this.#form.cap.tokens >= requestedTokens
      ? null
      : this.#form.cap.tokens;
  }

  /**
   * The most that the call may use at an offer. It is computed once. So the cap that is sent is the one that was
   * locked, even if the gateway has learnt more about the offer since then.
   */
  budgetAt(offer: Offer): ChatBudget {
    for (const locked of this.#budgets) if (locked.offer === offer) return locked.budget;
    const budget = chatBudget(this.#options.body, this.#options.size, offer);
    this.#budgets = [...this.#budgets, { offer, budget }];
    return budget;
  }

  /**
   * Whether the offer speaks the client's wire. False here: only NativeRequestAdapter serves clients of another wire
   * than chat.
   */
  speaks(_offer: Offer): boolean {
    return false;
  }

  /** Names of the fields that an offer would not get. `lost`: those that were lost before, which nobody gets. */
  lacks(offer: Offer, lost: readonly string[]): readonly string[] {
    const { dropped } = forwardedBody(
      this.#options.body,
      offer,
      { tokens: Infinity, field: null },
      this.#refusedAt(offer),
    );
    return [...lost, ...dropped.filter((field) => !FOR_ANOTHER_ROUTER.has(field))];
  }

  /** Throws GatewayError `unprocessable` for what costs money of its own, and has no price at the offer. */
  refuse(offer: Offer): void {
    refuseUnpaid((this.#extras ??= chatExtras(this.#options.body)), offer);
  }

  sizeAt(_offer: Offer, size: PromptSize): PromptSize {
    return size;
  }

  priceAt(offer: Offer): Price {
    const { body, isLine } = this.#options;
    return (isLine ? linePriceAt : priceAt)(offer, body['service_tier']);
  }

  prefix(account: string): ReturnType<RepeatedPrompt['prefix']> {
    return promptPrefix(this.#options.body, this.#options.size, account);
  }

  partsAt(offer: Offer): PricedParts {
    return partsAt(offer, () => (this.#requestedParts ??= askedParts(this.#options.body)));
  }

  request(offer: Offer): UpstreamRequest {
    return { method: 'POST', path: '/chat/completions', headers: this.#headers, body: this.#formFor(offer).bytes };
  }

  reader(offer: Offer): ReplyReader<ChatResult, ChatPiece> {
    const { body, created, replyBytesMax, readFor, dialect, output } = this.#options;
    const { budget, received } = this.#formFor(offer);
    const price = this.priceAt(offer);
    const context: ReplyContext = {
      callId: this.callId,
      service: offer.service,
      provider: offer.provider.name,
      rates: price.rates,
      serviceTiers: provableTiers(offer, price),
      parts: this.partsAt(offer),
      budget,
      size: received,
      created,
      replyBytesMax,
      unseen: unseenTokens(offer),
      speech: isObject(body['audio']) ? body['audio']['format'] : undefined,
      readFor,
      asObject: output !== undefined,
      dialect,
      continuation: this.#continuationAt(offer),
    };
    if (body.stream !== true) return new ChatReplyReader(context);
    return output === undefined ? createChatStreamReader(context) : createChatStreamDecoder(context, output());
  }

  goesOnAt(offer: Offer): boolean {
    return this.#continuation?.goesOnAt(offer) ?? false;
  }

  /** Set for a stream if its request, else its key, else its model wants that another one goes on with it. */
  #continuationAt({ model }: Offer): Continuation | undefined {
    const { stream, continue: isAsked, n } = this.#options.body;
    const isWanted = isAsked ?? this.#options.continues ?? model!.continues ?? false;
    if (stream !== true || (n ?? 1) > 1 || (!isWanted && this.#continuation === null)) return undefined;
    this.#continuation ??= new Continuation();
    this.#continuation.begin();
    return this.#continuation;
  }

  reform(offer: Offer, status: number, answer: Uint8Array): boolean {
    const { cap, reasons } = this.#formFor(offer);
    if (reasons && readReasoningRefusal(offer, status, answer)) this.#withoutReasoning = offer;
    else if (!this.#refusesStreamUsage(offer, status, answer) && !this.#refusesCap(offer, cap, status, answer))
      return false;
    this.#form = null;
    return true;
  }

  accepted(offer: Offer): void {
    this.#refused.learn(offer);
    if (this.#cap?.offer === offer && this.#cap.lasting) learnBound(offer, this.#cap.tokens);
  }

  #refusesStreamUsage(offer: Offer, status: number, answer: Uint8Array): boolean {
    const { body } = this.#options;
    if (body.stream !== true || !asksUsageAlone(body) || this.#refused.has(offer, STREAM_USAGE)) return false;
    const refusal = readFieldRefusal(status, answer, STREAM_USAGE);
    return refusal !== null && this.#leaveOut(offer, STREAM_USAGE, refusal);
  }

  #refusesCap(offer: Offer, { field, tokens }: ForwardedCap, status: number, answer: Uint8Array): boolean {
    if (field === null) return false;
    const refusal = readCapRefusal(status, answer, field, tokens);
    if (refusal?.kind === 'name') return this.#leaveOut(offer, field, 'unknown');
    const refusesName =
      refusal === null && requestedCap(this.#options.body) === null ? readFieldRefusal(status, answer, field) : null;
    if (refusesName === 'unknown') return this.#leaveOut(offer, field, refusesName);
    if (refusal === null && refusesName === null) return false;
    if (this.#cap?.offer !== offer) this.#cap = { offer, tokens: Infinity, lasting: false, isLeftOut: false, times: 0 };
    if (refusal === null) return (this.#cap.isLeftOut = true);
    if (this.#cap.times++ >= BOUNDS_MAX) return false;
    this.#cap.tokens = refusal.tokens;
    this.#cap.lasting = refusal.lasting;
    return true;
  }

  #leaveOut(offer: Offer, field: string, refusal: 'unknown' | 'named'): true {
    if (this.#refused === NO_REFUSALS) this.#refused = new RefusedFields();
    this.#refused.add(offer, field, refusal);
    return true;
  }

  /** Those that `forwardedBody` has to know. */
  #refusedAt(offer: Offer): readonly string[] | undefined {
    const isStream = this.#options.body.stream === true && this.#refused.has(offer, STREAM_USAGE);
    if (this.#withoutReasoning !== offer) return isStream ? [STREAM_USAGE] : undefined;
    return isStream ? ['reasoning', STREAM_USAGE] : ['reasoning'];
  }

  #formFor(offer: Offer): ChatRequestForm {
    if (this.#form?.offer === offer) return this.#form;
    return (this.#form = this.#write(offer));
  }

  #write(offer: Offer): ChatRequestForm {
    const { body, size } = this.#options;
    const cap = this.#capAt(offer);
    const { body: ofRequest, dropped } = forwardedBody(body, offer, cap, this.#refusedAt(offer));
    const isContinued = this.goesOnAt(offer);
    const forwarded = isContinued ? this.#continuation!.request(ofRequest, offer) : ofRequest;
    const received = dropped.length === 0 && !isContinued ? size : measurePrompt(forwarded as ChatBody);
    const budget = narrowed(body, withPrompt(this.budgetAt(offer), received, offer, isContinued), cap);
    return {
      offer,
      bytes: Buffer.from(JSON.stringify(forwarded)),
      cap,
      budget,
      dropped,
      received,
      reasons: 'reasoning' in forwarded,
    };
  }

  /** The cap is at most what was locked, and at most what the offer is now known to accept. */
  #capAt(offer: Offer): ForwardedCap {
    const { completionCap, keptBy } = this.budgetAt(offer);
    const { name, bound } = takenCap(offer, this.#refused);
    const here = this.#cap?.offer === offer ? this.#cap : null;
    const most = Math.min(completionCap, bound ?? Infinity, here?.tokens ?? Infinity);
    const tokens = this.goesOnAt(offer) ? this.#continuation!.remaining(most) : most;
    const isSent = keptBy === 'provider' && here?.isLeftOut !== true;
    return { tokens, field: isSent ? fieldOf(this.#options.body, name) : null };
  }
}

/** The locked budget, lowered to the cap of the form that is sent. Nearly always they are equal. */
function narrowed(body: ChatBody, budget: ChatBudget, { tokens, field }: ForwardedCap): ChatBudget {
  const sent = field !== null || budget.keptBy !== 'provider';
  if (sent && tokens === budget.completionCap) return budget;
  const keptBy = sent ? budget.keptBy : requestedCap(body) === null ? 'model' : 'gateway';
  return { ...budget, completionCap: tokens, completionTokensMax: tokens * (body.n ?? 1), keptBy };
}

function fieldOf(body: ChatBody, name: CapName | null): CapField | null {
  if (name !== null) return name === 'none' ? null : name;
  return typeof body.max_completion_tokens === 'number' && typeof body.max_tokens !== 'number'
    ? 'max_completion_tokens'
    : 'max_tokens';
}

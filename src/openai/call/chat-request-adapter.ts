import { isObject } from '#wire';
import type { Price } from '#billing/amounts';
import type { Dialect } from '#http';
import { type CapField, type CapName, readCapRefusal } from '#config';
import type { RequestAdapter, ReplyReader, UpstreamRequest } from '#call';
import type { Offer } from '#catalog';
import {
  requestedCap,
  chatBudget,
  unseenTokens,
  withPrompt,
  type ChatBudget,
  learnCap,
  speaksOfCap,
  takenCap,
} from '../chat/request/chat-budget.ts';
import type { ChatPiece, ChatResult, ReplyContext } from '../chat/reply/chat-end.ts';
import { ChatReplyReader } from '../chat/reply/chat-reply-reader.ts';
import type { ChatBody } from '../chat/chat-schema.ts';
import { createChatStreamDecoder, createChatStreamReader } from '../stream/chat-stream-reader.ts';
import type { ChunkOutput } from '../stream/chunk-output.ts';
import type { SentRequest } from '../chat/request/altered-headers.ts';
import {
  FOR_ANOTHER_ROUTER,
  forwardedBody,
  type ForwardedCap,
  readReasoningRefusal,
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

/** The forms of the cap that the current offer has refused in this call. */
interface RefusedCaps {
  readonly offer: Offer;
  readonly names: CapField[];
  /** The name to try instead; null if no name was refused. */
  name: CapName | null;
  /** The highest cap that the offer accepts for this prompt; Infinity if not known. */
  tokens: number;
  times: number;
}

/**
 * The most refusals of one offer that lead to another form: of one name of the cap, of the other name, and of the
 * bound.
 */
const REFUSALS_MAX = 3;

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
  #refused: RefusedCaps | null = null;
  #requestedParts: AskedParts | null = null;
  #extras: readonly PaidExtra[] | null = null;
  #withoutReasoning: Offer | null = null;

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
    const { dropped } = forwardedBody(this.#options.body, offer, { tokens: Infinity, field: null });
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
    };
    if (body.stream !== true) return new ChatReplyReader(context);
    return output === undefined ? createChatStreamReader(context) : createChatStreamDecoder(context, output());
  }

  reform(offer: Offer, status: number, answer: Uint8Array): boolean {
    const { cap, bytes, reasons } = this.#formFor(offer);
    if (reasons && readReasoningRefusal(offer, status, answer)) {
      this.#withoutReasoning = offer;
      this.#form = null;
      return true;
    }
    const { field, tokens } = cap;
    if (field === null) return false;
    const refusal = readCapRefusal(status, answer, field, tokens);
    if (refusal === null) return false;
    if (this.#refused?.offer !== offer) this.#refused = { offer, names: [], name: null, tokens: Infinity, times: 0 };
    const refused = this.#refused;
    if (refused.times++ >= REFUSALS_MAX) return false;
    const forOthers = !speaksOfCap(bytes.toString());
    if (refusal.kind === 'bound') {
      refused.tokens = refusal.tokens;
      if (refusal.lasting && forOthers) learnCap(offer, { bound: refusal.tokens });
    } else {
      refused.names.push(field);
      const other = refusal.instead ?? (field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens');
      refused.name = refused.names.includes(other) ? 'none' : other;
      if (forOthers) learnCap(offer, { name: refused.name });
    }
    this.#form = null;
    return true;
  }

  #formFor(offer: Offer): ChatRequestForm {
    if (this.#form?.offer === offer) return this.#form;
    return (this.#form = this.#write(offer));
  }

  #write(offer: Offer): ChatRequestForm {
    const { body, size } = this.#options;
    const cap = this.#capAt(offer);
    const { body: forwarded, dropped } = forwardedBody(body, offer, cap, this.#withoutReasoning === offer);
    const received = dropped.length === 0 ? size : measurePrompt(forwarded as ChatBody);
    const budget = narrowed(body, withPrompt(this.budgetAt(offer), received, offer), cap);
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
    const { name, bound } = takenCap(offer);
    const here = this.#refused?.offer === offer ? this.#refused : null;
    const tokens = Math.min(completionCap, bound ?? Infinity, here?.tokens ?? Infinity);
    return { tokens, field: keptBy === 'provider' ? fieldOf(this.#options.body, here?.name ?? name) : null };
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

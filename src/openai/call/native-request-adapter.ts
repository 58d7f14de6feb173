import type { Price } from '#billing/amounts';
import { NATIVE_APIS } from '#config';
import { readCapRefusal, readFieldRefusal } from '#config/refused-cap';
import type { RequestAdapter, ReplyReader, UpstreamRequest } from '#call';
import { NO_REFUSALS, RefusedFields } from '#call/refused-fields';
import type { Offer } from '#catalog';
import {
  chatBudget,
  fitsContext,
  unseenTokens,
  type ChatBudget,
  learnBound,
  takenCap,
} from '../chat/request/chat-budget.ts';
import type { ChatRequestAdapter } from './chat-request-adapter.ts';
import type { SentRequest } from '../chat/request/altered-headers.ts';
import { isPaidFor, type PaidExtra, withoutUnpaid } from '../chat/price/paid-extras.ts';
import type { ChatPiece, ChatResult, ReplyContext } from '../chat/reply/chat-end.ts';
import {
  type AskedParts,
  linePriceAt,
  partsAt,
  priceAt,
  type PricedParts,
  provableTiers,
} from '../chat/price/priced-parts.ts';
import type { PromptSize } from '../chat/request/prompt-size.ts';
import { listsOf, nativeBody, measureNative } from '../native/native-request.ts';
import { NativeReplyReader } from '../native/native-reply-reader.ts';
import { createNativeStreamReader } from '../native/native-stream-reader.ts';
import { capIn, headersFor, type NativeRequestFacts } from '../native/passthrough.ts';

interface NativeRequestAdapterOptions {
  readonly native: NativeRequestFacts;
  readonly chat: ChatRequestAdapter;
  readonly stream: boolean;
  readonly isLine: boolean;
  readonly requestId: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly replyBytesMax: number;
  readonly readFor: string;
}

/** The request in the form that some offers get. Its size and its parts are measured once. */
interface NativeRequestForm {
  readonly native: NativeRequestFacts;
  readonly dropped: readonly string[];
  size: PromptSize | null;
  parts: AskedParts | null;
}

/** One refusal of a bound is enough, because it names the right one. */
const BOUNDS_MAX = 1;
/** The cap as wires call it whose clients may leave it out. Gemini's letters differ. */
const CAP = 'max_output_tokens';

/**
 * The native side of a call whose client speaks another wire than chat. Providers that speak this wire get the
 * request as it came. Others get a chat request.
 */
export class NativeRequestAdapter implements RequestAdapter<ChatResult, ChatPiece>, SentRequest {
  readonly #options: NativeRequestAdapterOptions;
  readonly #headers: UpstreamRequest['headers'];
  readonly #budgets = new Map<Offer, ChatBudget>();
  readonly #extras: readonly PaidExtra[];
  /** The request as it came, and with fewer tools for offers that have no price for all of them. */
  readonly #whole: NativeRequestForm;
  readonly #others = new Map<Offer, NativeRequestForm>();
  #requestedOffer: Offer | null = null;
  #dropped: readonly string[] = [];
  #added: readonly string[] = [];
  #callId = '';
  #bounds = 0;
  /** The bound of the cap that an offer has told, if it holds for other prompts too. */
  #toldBound: { readonly offer: Offer; readonly bound: number } | null = null;
  #refused = NO_REFUSALS;

  constructor(options: NativeRequestAdapterOptions) {
    this.#options = options;
    const { native } = options;
    this.#extras = native.wire.extras(native.requestBody);
    this.#whole = { native, dropped: [], size: null, parts: null };
    this.#headers = {
      'content-type': 'application/json',
      accept: options.stream ? 'text/event-stream' : 'application/json',
      'x-request-id': options.requestId,
    };
  }

  set callId(id: string) {
    this.#callId = id;
    this.#options.chat.callId = id;
  }

  get isRequested(): boolean {
    return this.#requestedOffer !== null;
  }

  get service(): string | null {
    return this.#requestedOffer === null ? null : this.#requestedOffer.service;
  }

  get isNative(): boolean {
    return this.#requestedOffer !== null && this.speaks(this.#requestedOffer);
  }

  get dropped(): readonly string[] {
    return this.isNative ? this.#dropped : this.#options.chat.dropped;
  }

  get maxTokens(): number | null {
    if (this.#requestedOffer === null || !this.speaks(this.#requestedOffer)) return this.#options.chat.maxTokens;
    const { completionCap } = this.budgetAt(this.#requestedOffer);
    const cap = this.#cap;
    return cap === null || completionCap >= cap ? null : completionCap;
  }

  speaks({ model }: Offer): boolean {
    return model!.wires?.includes(this.#options.native.wire.name) ?? false;
  }

  /** See ChatRequestAdapter. Nothing was lost for an offer that speaks the wire. */
  lacks(offer: Offer, lost: readonly string[]): readonly string[] {
    const { native, chat } = this.#options;
    if (!this.speaks(offer)) return chat.lacks(offer, lost);
    const unpaid = this.#extras.filter((extra) => !isPaidFor(offer, extra));
    if (unpaid.length > 0) return unpaid.map(({ names }) => names[0]!);
    const { dropped } = nativeBody(native, offer, { tokens: Infinity, isSet: false });
    return [...dropped, ...headersFor(native.wire, native.headers, listsOf(offer)).dropped];
  }

  /** Throws GatewayError `unprocessable` for what costs money of its own, and has no price at the offer. */
  refuse(offer: Offer): void {
    if (!this.speaks(offer)) return this.#options.chat.refuse(offer);
    this.#options.native.wire.refuse?.(offer);
    this.#formAt(offer);
  }

  sizeAt(offer: Offer, translated: PromptSize): PromptSize {
    return this.speaks(offer) ? this.#sizeAt(offer) : translated;
  }

  priceAt(offer: Offer): Price {
    const { native, chat, isLine } = this.#options;
    if (!this.speaks(offer)) return chat.priceAt(offer);
    return (isLine ? linePriceAt : priceAt)(offer, native.requestBody['service_tier']);
  }

  partsAt(offer: Offer): PricedParts {
    if (!this.speaks(offer)) return this.#options.chat.partsAt(offer);
    const form = this.#formAt(offer);
    const { wire, requestBody, text } = form.native;
    const parts = partsAt(offer, () => (form.parts ??= wire.asks(requestBody, text)));
    const { searchLimit } = wire;
    // As where a provider takes no limit: more searches than are locked are no fault, and cost nothing.
    const isUnlimited = searchLimit !== undefined && this.#refused.has(offer, searchLimit);
    return isUnlimited ? { ...parts, searchesUnlimited: true } : parts;
  }

  /**
   * The most that the call may use at an offer. Throws GatewayError if the offer does not speak the wire and the
   * request cannot be translated.
   */
  budgetAt(offer: Offer): ChatBudget {
    const { native, chat } = this.#options;
    if (!this.speaks(offer)) {
      if (native.untranslatable !== null) throw native.untranslatable;
      return chat.budgetAt(offer);
    }
    let budget = this.#budgets.get(offer);
    if (budget === undefined) this.#budgets.set(offer, (budget = this.#nativeBudget(offer)));
    return budget;
  }

  request(offer: Offer): UpstreamRequest {
    this.#requestedOffer = offer;
    if (!this.speaks(offer)) return this.#options.chat.request(offer);
    const { native, dropped: unpaid } = this.#formAt(offer);
    const { completionCap, keptBy } = this.budgetAt(offer);
    const isOwn = this.#cap !== null && completionCap >= this.#cap;
    const cap = { tokens: completionCap, isSet: !isOwn && keptBy !== 'model' };
    const { text, dropped, added } = nativeBody(native, offer, cap, this.#refused);
    this.#added = cap.isSet && this.#cap === null ? [...added, CAP] : added;
    const { name, below = '' } = native.wire;
    const headers = headersFor(native.wire, native.headers, listsOf(offer));
    this.#dropped = [...dropped, ...unpaid, ...headers.dropped];
    return {
      method: 'POST',
      path: NATIVE_APIS[name].path(offer.model!.upstreamModel, this.#options.stream) + below,
      headers: { ...this.#headers, ...headers.sent },
      body: Buffer.from(text),
    };
  }

  reader(offer: Offer): ReplyReader<ChatResult, ChatPiece> {
    const { native, chat, stream, created, replyBytesMax, readFor } = this.#options;
    if (!this.speaks(offer)) return chat.reader(offer);
    const price = this.priceAt(offer);
    const context: ReplyContext = {
      callId: this.#callId,
      service: offer.service,
      provider: offer.provider.name,
      rates: price.rates,
      serviceTiers: provableTiers(offer, price),
      parts: this.partsAt(offer),
      budget: this.budgetAt(offer),
      size: this.#sizeAt(offer),
      created,
      replyBytesMax,
      unseen: unseenTokens(offer),
      speech: 'pcm',
      readFor,
      asObject: true,
    };
    const decoder = native.wire.decoder(native.model, this.#callId);
    return stream ? createNativeStreamReader(context, decoder) : new NativeReplyReader(context, decoder);
  }

  /** A stream of a provider of the client's own wire cannot be gone on with, because it was not read. */
  goesOnAt(offer: Offer): boolean {
    return !this.isNative && !this.speaks(offer) && this.#options.chat.goesOnAt(offer);
  }

  reform(offer: Offer, status: number, answer: Uint8Array): boolean {
    if (!this.speaks(offer)) return this.#options.chat.reform(offer, status, answer);
    this.#options.native.wire.refused?.(offer, status);
    for (const field of this.#added) {
      const refusal = readFieldRefusal(status, answer, field);
      if (refusal !== null) return this.#leaveOut(offer, field, refusal);
    }
    const budget = this.budgetAt(offer);
    if (this.#cap === null || this.#bounds >= BOUNDS_MAX) return false;
    const refusal = readCapRefusal(status, answer, 'max_tokens', budget.completionCap);
    if (refusal?.kind !== 'bound' || refusal.tokens >= budget.completionCap) return false;
    this.#bounds++;
    this.#toldBound = refusal.lasting ? { offer, bound: refusal.tokens } : null;
    this.#budgets.set(offer, { ...budget, completionCap: refusal.tokens, completionTokensMax: refusal.tokens });
    return true;
  }

  accepted(offer: Offer): void {
    if (!this.speaks(offer)) return this.#options.chat.accepted(offer);
    this.#refused.learn(offer);
    if (this.#toldBound?.offer === offer) learnBound(offer, this.#toldBound.bound);
  }

  #leaveOut(offer: Offer, field: string, refusal: 'unknown' | 'named'): true {
    if (field === CAP) this.#budgets.set(offer, { ...this.budgetAt(offer), keptBy: 'model' });
    if (this.#refused === NO_REFUSALS) this.#refused = new RefusedFields();
    this.#refused.add(offer, field, refusal);
    return true;
  }

  get #cap(): number | null {
    const { requestBody, wire } = this.#options.native;
    return capIn(wire, requestBody);
  }

  #nativeBudget(offer: Offer): ChatBudget {
    const cap = this.#cap;
    const size = this.#sizeAt(offer);
    const budget = chatBudget({ model: '', messages: [], max_tokens: cap }, size, offer);
    const { bound } = takenCap(offer);
    const isSent =
      cap !== null ||
      (bound !== null && fitsContext(size, budget.completionCap, offer) && !this.#refused.has(offer, CAP));
    return { ...budget, keptBy: isSent ? 'provider' : 'model' };
  }

  #sizeAt(offer: Offer): PromptSize {
    const form = this.#formAt(offer);
    return (form.size ??= measureNative(form.native));
  }

  /** The request in the form that an offer gets. Throws GatewayError, see `refuse`. */
  #formAt(offer: Offer): NativeRequestForm {
    if (this.#extras.length === 0) return this.#whole;
    let form = this.#others.get(offer);
    if (form === undefined) {
      const { native } = this.#options;
      const { requestBody, dropped } = withoutUnpaid(native.requestBody, this.#extras, offer);
      form =
        requestBody === native.requestBody
          ? this.#whole
          : { native: { ...native, requestBody, fewerTools: true }, dropped, size: null, parts: null };
      this.#others.set(offer, form);
    }
    return form;
  }
}

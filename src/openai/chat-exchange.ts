import { type CapField, type CapName, readCapRefusal } from '#wire';
import type { Exchange, Offer, ReplyReader, UpstreamRequest } from '#gateway';
import { askedCap, unseenTokens, withPrompt, type ChatBudget } from './caps/chat-budget.ts';
import type { ReplyContext } from './reply/chat-end.ts';
import { createChatReplyReader } from './reply/chat-reply-reader.ts';
import type { ChatBody } from './request/chat-schema.ts';
import { createChatStreamReader } from './stream/chat-stream-reader.ts';
import { forwardedBody, type ForwardedCap } from './request/forwarded-body.ts';
import { measurePrompt, type PromptSize } from './request/prompt-size.ts';
import { learnCap, takenCap } from './caps/taken-cap.ts';

interface ChatExchangeOptions {
  readonly body: ChatBody;
  readonly size: PromptSize;
  /** The most that the call may use at an offer, as it was locked. */
  readonly budgetAt: (offer: Offer) => ChatBudget;
  readonly requestId: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly replyBytesMax: number;
  /** See ReplyContext. */
  readonly readFor?: string | undefined;
}

/** The native side of a chat call. */
export interface ChatExchange extends Exchange {
  /** The id that the reply carries; set when the call has been prepared, before it is run. */
  callId: string;
  /** An offer was asked, so the call is locked. */
  readonly asked: boolean;
  /** Names of the fields that the offer which was asked last did not get. */
  readonly dropped: readonly string[];
  /** The cap at the offer that was asked last, where it is less than the client's; else null. */
  readonly maxTokens: number | null;
  reform(offer: Offer, status: number, body: Uint8Array): boolean;
}

/** A request as it is written for one offer. */
interface Form {
  readonly offer: Offer;
  readonly text: string;
  readonly cap: ForwardedCap;
  readonly budget: ChatBudget;
  readonly dropped: readonly string[];
  /** Of what the offer gets. */
  readonly received: PromptSize;
}

/** The caps of this call that the offer which is being asked has refused. */
interface Refused {
  readonly offer: Offer;
  readonly names: CapField[];
  /** The name that is tried instead; null where none was refused. */
  name: CapName | null;
  /** The bound for this prompt. */
  tokens: number;
  times: number;
}

/** A name, the other name, and a bound under one of them. */
const REFUSALS_MAX = 3;

/** The names of a cap in refusals. */
const CAP_WORDS = /max_?(?:completion_?|output_?)?tokens/gi;

/**
 * Whether a request speaks of the cap beside the one field that it is sent in. A service may repeat a name or a
 * text of the consumer at the very beginning of its error, so what such a request is refused for counts for it
 * alone.
 */
const speaksOfCap = (text: string): boolean => (text.match(CAP_WORDS)?.length ?? 0) > 1;

export function createChatExchange({
  body,
  size,
  budgetAt,
  requestId,
  created,
  replyBytesMax,
  readFor,
}: ChatExchangeOptions): ChatExchange {
  const stream = body.stream === true;
  // Nearly every call is sent to one offer once.
  let form: Form | null = null;
  let refused: Refused | null = null;

  function formFor(offer: Offer): Form {
    if (form?.offer === offer) return form;
    return (form = write(offer));
  }

  function write(offer: Offer): Form {
    const cap = capAt(offer);
    const { body: forwarded, dropped } = forwardedBody(body, offer, cap);
    const received = dropped.length === 0 ? size : measurePrompt(forwarded as ChatBody);
    const budget = narrowed(withPrompt(budgetAt(offer), received, offer), cap);
    return { offer, text: JSON.stringify(forwarded), cap, budget, dropped, received };
  }

  /** The locked budget as far as the form that is sent goes. Nearly always that is all of it. */
  function narrowed(budget: ChatBudget, { tokens, field }: ForwardedCap): ChatBudget {
    const sent = field !== null || budget.keptBy !== 'provider';
    if (sent && tokens === budget.completionCap) return budget;
    const keptBy = sent ? budget.keptBy : askedCap(body) === null ? 'model' : 'gateway';
    return { ...budget, completionCap: tokens, completionTokensMax: tokens * (body.n ?? 1), keptBy };
  }

  /** At most what was locked, and what is known by now. */
  function capAt(offer: Offer): ForwardedCap {
    const { completionCap, keptBy } = budgetAt(offer);
    const { name, bound } = takenCap(offer);
    const here = refused?.offer === offer ? refused : null;
    const tokens = Math.min(completionCap, bound ?? Infinity, here?.tokens ?? Infinity);
    return { tokens, field: keptBy === 'provider' ? fieldOf(here?.name ?? name) : null };
  }

  function fieldOf(name: CapName | null): CapField | null {
    if (name !== null) return name === 'none' ? null : name;
    return typeof body.max_completion_tokens === 'number' && typeof body.max_tokens !== 'number'
      ? 'max_completion_tokens'
      : 'max_tokens';
  }

  const headers = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'x-request-id': requestId,
  };

  return {
    callId: '',
    get asked() {
      return form !== null;
    },
    get dropped() {
      return form?.dropped ?? [];
    },
    get maxTokens() {
      const asked = askedCap(body);
      return form === null || asked === null || form.cap.tokens >= asked ? null : form.cap.tokens;
    },
    request(offer): UpstreamRequest {
      return { method: 'POST', path: '/chat/completions', headers, body: formFor(offer).text };
    },
    reader(offer): ReplyReader {
      const { budget, received } = formFor(offer);
      const context: ReplyContext = {
        callId: this.callId,
        service: offer.service,
        provider: offer.provider.name,
        completionRate: offer.price.rates.completion ?? 0n,
        budget,
        size: received,
        created,
        replyBytesMax,
        unseen: unseenTokens(offer),
        ...(readFor === undefined ? {} : { readFor }),
      };
      return stream ? createChatStreamReader(context) : createChatReplyReader(context);
    },
    reform(offer, status, answer) {
      const { cap, text } = formFor(offer);
      const { field, tokens } = cap;
      if (field === null) return false;
      const refusal = readCapRefusal(status, answer, field, tokens);
      if (refusal === null) return false;
      if (refused?.offer !== offer) refused = { offer, names: [], name: null, tokens: Infinity, times: 0 };
      if (refused.times++ >= REFUSALS_MAX) return false;
      const forOthers = !speaksOfCap(text);
      if (refusal.of === 'bound') {
        refused.tokens = refusal.tokens;
        if (refusal.lasting && forOthers) learnCap(offer, { bound: refusal.tokens });
      } else {
        refused.names.push(field);
        const other = refusal.instead ?? (field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens');
        refused.name = refused.names.includes(other) ? 'none' : other;
        if (forOthers) learnCap(offer, { name: refused.name });
      }
      form = null;
      return true;
    },
  };
}

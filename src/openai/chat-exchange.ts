import type { Exchange, Offer, ReplyReader, UpstreamRequest } from '#gateway';
import { chatBudget, unseenTokens, withPrompt } from './chat-budget.ts';
import type { ReplyContext } from './chat-end.ts';
import { createChatReplyReader } from './chat-reply-reader.ts';
import type { ChatBody } from './chat-schema.ts';
import { createChatStreamReader } from './chat-stream-reader.ts';
import { forwardedBody } from './forwarded-body.ts';
import { measurePrompt, type PromptSize } from './prompt-size.ts';

export interface ChatExchangeOptions {
  readonly body: ChatBody;
  readonly size: PromptSize;
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
  /** Names of the fields that the offer which was asked last did not get. */
  readonly dropped: readonly string[];
}

export function createChatExchange({ body, size, requestId, created, replyBytesMax, readFor }: ChatExchangeOptions): ChatExchange {
  const stream = body.stream === true;
  // Nearly every call is sent to one offer once.
  let serialisedFor: Offer | null = null;
  let serialised = '';
  let dropped: readonly string[] = [];
  /** Of what the offer got. */
  let received = size;

  function serialise(offer: Offer): string {
    if (serialisedFor === offer) return serialised;
    const { completionCap } = chatBudget(body, size, offer);
    const forwarded = forwardedBody(body, offer, completionCap);
    serialisedFor = offer;
    serialised = JSON.stringify(forwarded.body);
    dropped = forwarded.dropped;
    received = dropped.length === 0 ? size : measurePrompt(forwarded.body as ChatBody);
    return serialised;
  }

  const headers = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'x-request-id': requestId,
  };

  return {
    callId: '',
    get dropped() {
      return dropped;
    },
    request(offer): UpstreamRequest {
      return { method: 'POST', path: '/chat/completions', headers, body: serialise(offer) };
    },
    reader(offer): ReplyReader {
      const context: ReplyContext = {
        callId: this.callId,
        service: offer.service,
        provider: offer.provider.name,
        completionRate: offer.price.rates.completion ?? 0n,
        budget: withPrompt(chatBudget(body, size, offer), received, offer),
        size: received,
        created,
        replyBytesMax,
        unseen: unseenTokens(offer),
        ...(readFor === undefined ? {} : { readFor }),
      };
      return stream ? createChatStreamReader(context) : createChatReplyReader(context);
    },
  };
}

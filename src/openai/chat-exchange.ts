import type { Exchange, Offer, ReplyReader, UpstreamRequest } from '#gateway';
import { chatBudget } from './chat-budget.ts';
import type { ReplyContext } from './chat-end.ts';
import { createChatReplyReader } from './chat-reply-reader.ts';
import type { ChatBody } from './chat-schema.ts';
import { createChatStreamReader } from './chat-stream-reader.ts';
import type { PromptSize } from './prompt-size.ts';

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
}

/** Fields that speak to the gateway and not to the provider. `__proto__` would not be copied as a field but as a prototype. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'provider',
  'models',
  'session_id',
  'metadata',
  'stream_options',
  'tollgate',
  'max_cost',
  'max_tool_rounds',
  '__proto__',
]);

export function createChatExchange({ body, size, requestId, created, replyBytesMax, readFor }: ChatExchangeOptions): ChatExchange {
  const stream = body.stream === true;
  let forwarded: ChatBody | null = null;
  // Nearly every call is sent to one offer once.
  let serialisedFor: Offer | null = null;
  let serialised = '';

  function serialise(offer: Offer): string {
    if (serialisedFor === offer) return serialised;
    forwarded ??= toForwarded(body, stream);
    const { completionCap } = chatBudget(body, size, offer);
    forwarded.model = offer.model!.upstreamModel;
    // The cap that the lock was computed with, under the name that the client used.
    const current = typeof body.max_completion_tokens === 'number';
    if (current) forwarded.max_completion_tokens = completionCap;
    if (!current || typeof body.max_tokens === 'number') forwarded.max_tokens = completionCap;
    serialisedFor = offer;
    serialised = JSON.stringify(forwarded);
    return serialised;
  }

  const headers = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'x-request-id': requestId,
  };

  return {
    callId: '',
    request(offer): UpstreamRequest {
      return { method: 'POST', path: '/chat/completions', headers, body: serialise(offer) };
    },
    reader(offer): ReplyReader {
      const context: ReplyContext = {
        callId: this.callId,
        service: offer.service,
        budget: chatBudget(body, size, offer),
        size,
        created,
        replyBytesMax,
        ...(readFor === undefined ? {} : { readFor }),
      };
      return stream ? createChatStreamReader(context) : createChatReplyReader(context);
    },
  };
}

function toForwarded(body: ChatBody, stream: boolean): ChatBody {
  const forwarded: Record<string, unknown> = {};
  for (const field of Object.keys(body)) if (!NOT_FORWARDED.has(field)) forwarded[field] = body[field];
  // A stream without usage cannot be billed.
  if (stream) forwarded['stream_options'] = { ...body.stream_options, include_usage: true };
  return forwarded as ChatBody;
}

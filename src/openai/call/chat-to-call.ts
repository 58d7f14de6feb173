import type { Dialect } from '#http';
import {
  capCost,
  requestedModels,
  NO_PREFERENCES,
  singleRequest,
  type CallRequest,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
  lowestCap,
  MAX_COST_HEADER,
  type CostCap,
} from '#call';
import type { Caller } from '#accounts';
import type { PaymentAttempt } from '#payments';
import { formatUsd } from '#billing/amounts';
import { checkFits, toUsage } from '../chat/request/chat-budget.ts';
import type { ChatPiece, ChatResult } from '../chat/reply/chat-end.ts';
import { ChatRequestAdapter } from './chat-request-adapter.ts';
import type { ChunkOutput } from '../stream/chunk-output.ts';
import { NativeRequestAdapter } from './native-request-adapter.ts';
import type { NativeRequestFacts } from '../native/passthrough.ts';
import type { ChatBody } from '../chat/chat-schema.ts';
import { isLine } from '../chat/price/priced-parts.ts';
import { measurePrompt } from '../chat/request/prompt-size.ts';
import { refuseForPackage, refuseManyStops } from '../chat/request/refusals.ts';

export interface ChatContext {
  readonly caller: Caller;
  /** The payment that came with the request; null or absent for none. */
  readonly payment?: PaymentAttempt | null;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
  /**
   * Makes what takes the chunks of a stream, for each attempt. A reply that is not streamed then comes as an object. It
   * may have at most 2 MiB. Default: the reply comes as bytes of the chat wire.
   */
  readonly output?: () => ChunkOutput<ChatPiece>;
  /** Of the client that the reply is written to. Default `own`. */
  readonly dialect?: Dialect;
  /**
   * The request as the client wrote it, for providers that speak the client's wire; null or absent for a chat
   * request.
   */
  readonly native?: NativeRequestFacts | null;
  /** Names of the fields that the wire's translation to chat loses; absent for none. */
  readonly lost?: readonly string[];
  readonly onLocked?: () => void;
}

/**
 * Turns a validated body into the request for the pipeline and its native adapter. Throws GatewayError
 * `invalid_request`.
 */
export function toCall(
  body: ChatBody,
  context: ChatContext,
): {
  readonly request: CallRequest<ChatResult, ChatPiece>;
  readonly adapter: ChatRequestAdapter | NativeRequestAdapter;
} {
  const size = measurePrompt(body);
  const stream = body.stream === true;
  const chat = new ChatRequestAdapter({
    body,
    size,
    requestId: context.requestId,
    created: Math.floor(context.now / 1000),
    replyBytesMax: context.replyBytesMax,
    isLine: isLine(context.caller),
    continues: context.caller.key?.continues,
    readFor: context.caller.account,
    dialect: context.dialect,
    output: context.output,
  });
  const adapter = context.native ? nativeRequestAdapter(context.native, chat, stream, context) : chat;
  const session = requestedSession(body, context.headers);
  const traceparent = context.headers['traceparent'];
  const request: CallRequest<ChatResult, ChatPiece> = {
    primitive: 'model',
    caller: context.caller,
    requestId: context.requestId,
    targets: requestedModels(body),
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    // The account is part of the key, because two accounts may use the same session name.
    stickyKey: session === null ? null : `${context.caller.account} ${session}`,
    repeats: session === null ? chat : undefined,
    images: size.images,
    stream,
    adapter: singleRequest<ChatResult, ChatPiece>(adapter),
    prefers: context.native?.isLossy ? (offer) => adapter.speaks(offer) : undefined,
    estimate(offer) {
      refuseForPackage(body, offer);
      adapter.refuse(offer);
      if (!adapter.speaks(offer)) refuseManyStops(body, offer);
      const sent = adapter.sizeAt(offer, size);
      checkFits(sent, offer);
      return toUsage(adapter.budgetAt(offer), sent, adapter.partsAt(offer));
    },
    lacks: body.provider?.require_parameters === true ? (offer) => adapter.lacks(offer, context.lost ?? []) : undefined,
    price: asksTier(body, context) ? (offer) => adapter.priceAt(offer) : undefined,
    metadata: body.metadata ?? null,
    endUser: endUserOf(body, context),
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(stream, context),
    payment: context.payment ?? null,
    quote: requestedQuote(null, context.headers, null),
    onLocked: context.onLocked,
  };
  return { request: capCost(request, maxCostOf(body)), adapter };
}

/** The end user in the request as its client wrote it. */
function endUserOf(body: ChatBody, { native }: ChatContext): string | null {
  const { user, safety_identifier: safety } = native?.requestBody ?? body;
  if (typeof user === 'string') return user;
  return typeof safety === 'string' ? safety : null;
}

/** Whether the request names a service tier, which may have its own price, or is the line of a batch. */
const asksTier = (body: ChatBody, { native, caller }: ChatContext): boolean =>
  isLine(caller) || typeof body['service_tier'] === 'string' || typeof native?.requestBody['service_tier'] === 'string';

const nativeRequestAdapter = (
  native: NativeRequestFacts,
  chat: ChatRequestAdapter,
  stream: boolean,
  { requestId, now, replyBytesMax, caller }: ChatContext,
): NativeRequestAdapter =>
  new NativeRequestAdapter({
    native,
    chat,
    stream,
    isLine: isLine(caller),
    requestId,
    created: Math.floor(now / 1000),
    replyBytesMax,
    readFor: caller.account,
  });

const MAX_COST = 'max_cost';

/** The body's `max_cost`; null without one. Throws GatewayError `invalid_request`. */
export const maxCostOf = ({ max_cost: maxCost }: Pick<ChatBody, 'max_cost'>): CostCap | null =>
  lowestCap([[MAX_COST, maxCost]]);

/**
 * Sets `max_cost` from the `x-max-cost` header, if the header is lower or the body has no `max_cost`. The header
 * serves clients that cannot change the body, and proxies in front of the gateway. Throws GatewayError
 * `invalid_request`.
 */
export function withMaxCost(body: ChatBody, header: string | string[] | undefined): ChatBody {
  if (header === undefined) return body;
  const cap = lowestCap([
    [MAX_COST, body.max_cost],
    [MAX_COST_HEADER, header],
  ]);
  return cap?.name === MAX_COST_HEADER ? { ...body, max_cost: formatUsd(cap.amount) } : body;
}

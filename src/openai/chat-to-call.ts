import { GatewayError } from '#wire';
import { MoneyError, parseRates } from '#billing/amounts';
import {
  capCost,
  NO_PREFERENCES,
  oneRequest,
  type Caller,
  type CallRequest,
  type PaymentSlip,
  type RoutePreferences,
} from '#gateway';
import { checkFits, toUsage } from './caps/chat-budget.ts';
import { ChatExchange } from './chat-exchange.ts';
import type { ChatBody, ProviderPreferences } from './request/chat-schema.ts';
import { maxCostOf } from './request/max-cost.ts';
import { modelsAsked } from './request/models-asked.ts';
import { measurePrompt } from './request/prompt-size.ts';

export interface ChatContext {
  readonly caller: Caller;
  /** The payment that came with the request; null or absent for none. */
  readonly payment?: PaymentSlip | null;
  readonly requestId: string;
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
  /**
   * The reply is read by the gateway itself and not written to a client: it comes as an object, and is no larger
   * than 2 MiB.
   */
  readonly asObject?: boolean;
}

const SESSION_ID_MAX = 256;

/**
 * A validated body as what the pipeline needs of it, and its native exchange. Throws GatewayError `invalid_request`.
 */
export function toCall(
  body: ChatBody,
  context: ChatContext,
): { readonly request: CallRequest; readonly exchange: ChatExchange } {
  const size = measurePrompt(body);
  const stream = body.stream === true;
  const exchange = new ChatExchange({
    body,
    size,
    requestId: context.requestId,
    created: Math.floor(context.now / 1000),
    replyBytesMax: context.replyBytesMax,
    readFor: context.asObject ? undefined : context.caller.account,
  });
  const session = sessionOf(body, context.headers);
  const traceparent = context.headers['traceparent'];
  const request: CallRequest = {
    primitive: 'model',
    caller: context.caller,
    requestId: context.requestId,
    targets: modelsAsked(body),
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    // One account's sessions say nothing about another's.
    stickyKey: session === null ? null : `${context.caller.account} ${session}`,
    images: size.images,
    stream,
    exchange: oneRequest(exchange),
    estimate(offer) {
      checkFits(size, offer);
      return toUsage(exchange.budgetAt(offer), size);
    },
    metadata: body.metadata ?? null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(stream, context),
    payment: context.payment ?? null,
  };
  return { request: capCost(request, maxCostOf(body)), exchange };
}

/** Whether a signed receipt goes with the reply. */
export function wantsReceipt(
  stream: boolean,
  { receipts, headers }: Pick<ChatContext, 'receipts' | 'headers'>,
): boolean {
  return (receipts === 'always' && !stream) || asksForReceipt(headers);
}

/** A request header `x-receipt: 1` asks for a signed receipt where they are not always given. */
function asksForReceipt(headers: ChatContext['headers']): boolean {
  const asked = headers['x-receipt'];
  return asked === '1' || asked === 'true';
}

/** The session that the body or a header names; null for none. Throws GatewayError `invalid_request`. */
export function sessionOf(body: ChatBody, headers: ChatContext['headers']): string | null {
  if (body.session_id) return body.session_id;
  const header = headers['x-session-id'];
  if (typeof header !== 'string' || header === '') return null;
  if (header.length > SESSION_ID_MAX)
    throw new GatewayError('invalid_request', `The x-session-id header must be at most ${SESSION_ID_MAX} characters`, {
      param: 'x-session-id',
    });
  return header;
}

export function toPreferences(provider: ProviderPreferences): RoutePreferences {
  return {
    order: provider.order ?? [],
    only: provider.only ?? [],
    ignore: provider.ignore ?? [],
    allowFallbacks: provider.allow_fallbacks ?? true,
    sort: provider.sort ?? null,
    maxPrice: provider.max_price ? toMaxPrice(provider.max_price) : null,
  };
}

function toMaxPrice(prices: NonNullable<ProviderPreferences['max_price']>): RoutePreferences['maxPrice'] {
  try {
    return parseRates(prices);
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    const message = error.message.replaceAll('pricing.', 'provider.max_price.');
    const param = /^provider\.max_price\.\w+/.exec(message)?.[0] ?? 'provider.max_price';
    throw new GatewayError('invalid_request', message, { param, cause: error });
  }
}

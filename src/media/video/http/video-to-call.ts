import {
  capCost,
  type Caller,
  type CallRequest,
  type ProviderAdapter,
  lowestCap,
  MAX_COST_HEADER,
  requestedModels,
  NO_PREFERENCES,
  type PaymentAttempt,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#gateway';
import type { VideoAsk, VideoBody } from '../request/video-ask.ts';
import { planAt, videoPrice } from '../video-price.ts';
import { jobFields } from '../wires/openai-videos.ts';

interface VideoContext {
  readonly caller: Caller;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly receipts: 'always' | 'on-request';
}

/**
 * Turns a checked body into a request for the pipeline. Offers that cannot serve the request are skipped, and each
 * names the field that it does not take. Throws GatewayError `invalid_request` and `unprocessable`.
 */
export function videoToCall(
  body: VideoBody,
  ask: VideoAsk,
  exchange: ProviderAdapter,
  context: VideoContext,
): CallRequest {
  const { caller, headers, requestId, payment } = context;
  const session = requestedSession(body, headers);
  const traceparent = headers['traceparent'];
  const request: CallRequest = {
    primitive: 'video',
    caller,
    requestId,
    targets: requestedModels(body),
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    images: 0,
    stream: false,
    exchange,
    price: (offer) => videoPrice(ask, offer),
    estimate(offer) {
      jobFields(ask, offer);
      const { seconds } = planAt(ask, offer);
      return { second: BigInt(seconds * ask.n), call: BigInt(ask.n) };
    },
    priced: (offer) => ({ n: ask.n, ...planAt(ask, offer) }),
    quote: requestedQuote(body['quote_id'], headers, payment),
    metadata: body.metadata ?? null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(false, context),
    ...(payment ? { payment } : {}),
  };
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return capCost(request, cap);
}

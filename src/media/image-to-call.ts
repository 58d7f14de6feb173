import {
  capCost,
  type Caller,
  type CallRequest,
  lowestCap,
  MAX_COST_HEADER,
  requestedModels,
  NO_PREFERENCES,
  singleRequest,
  requestedQuote,
  type PaymentAttempt,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#gateway';
import { createImageRequestAdapter } from './image-request-adapter.ts';
import { imagePrice, priceAsListed, pricedQualities, tierAt, unprocessable } from './image-price.ts';
import { imagesUsed } from './reply/image-reader.ts';
import { type EventForm, type ImageAsk, type ImageBody, toImageAsk } from './request/image-ask.ts';
import type { EditInputs } from './request/input-images.ts';
import { wireOf } from './wires/wire-of.ts';

interface ImageContext {
  readonly caller: Caller;
  /** null for a generation. */
  readonly edit: EditInputs | null;
  readonly events: EventForm;
  readonly payment: PaymentAttempt | null;
  readonly requestId: string;
  /** Request headers, lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly replyBytesMax: number;
  readonly receipts: 'always' | 'on-request';
}

/** A request for images as the pipeline takes it. */
export interface ImageCall {
  readonly request: CallRequest;
  readonly ask: ImageAsk;
}

/**
 * Turns a checked body into a request for the pipeline. Offers that cannot serve the request are skipped, and each
 * names the field that it does not take. Throws GatewayError `invalid_request` and `unprocessable`.
 */
export function imageToCall(body: ImageBody, context: ImageContext): ImageCall {
  const { caller, headers, requestId, replyBytesMax, payment } = context;
  const ask = toImageAsk(body, caller.account, context);
  const session = requestedSession(body, headers);
  const preferences = body.provider ? toPreferences(body.provider) : NO_PREFERENCES;
  const traceparent = headers['traceparent'];
  const request: CallRequest = {
    primitive: 'image',
    caller,
    requestId,
    targets: requestedModels(body),
    preferences,
    stickyKey: session === null ? null : `${caller.account} ${session}`,
    images: 0,
    ...(context.edit === null ? {} : { memory: context.edit }),
    stream: ask.stream !== null,
    exchange: singleRequest(createImageRequestAdapter({ ask, requestId, replyBytesMax })),
    price(offer) {
      const price = imagePrice(ask, offer);
      const max = preferences.maxPrice?.image;
      if (max !== undefined && (price.rates.image ?? 0n) > max)
        throw unprocessable('provider.max_price.image', `${offer.provider.name} charges more for such an image`);
      return price;
    },
    priceBefore: (offer) => priceAsListed(ask, offer),
    priced: (offer) => ({
      n: ask.n,
      images: ask.edit?.count ?? null,
      resolution: tierAt(ask, offer),
      quality: pricedQualities(ask, offer).length > 0 ? ask.quality : null,
    }),
    quote: requestedQuote(body['quote_id'], headers, payment),
    estimate(offer) {
      wireOf(offer).fields(ask, offer, true);
      return imagesUsed(ask.n, ask.edit?.count ?? 0);
    },
    metadata: body.metadata ?? null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(false, context),
    ...(payment ? { payment } : {}),
  };
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return { request: capCost(request, cap), ask };
}

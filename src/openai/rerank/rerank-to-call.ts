import { pricedMeters, rateOf } from '#billing/amounts';
import { GatewayError } from '#errors';
import {
  capCost,
  type RequestAdapter,
  lowestCap,
  MAX_COST_HEADER,
  NO_PREFERENCES,
  singleRequest,
  requestedQuote,
  requestedSession,
  toPreferences,
  wantsReceipt,
} from '#gateway';
import type { Offer } from '#catalog';
import { reranks, wrongKind } from '../model-kinds.ts';
import { listsField, passedBody } from '../passing/passed-body.ts';
import type { PassedCall, PassedContext } from '../passing/passed-route.ts';
import { createRerankReader, type RerankResult } from './rerank-reader.ts';
import type { RerankBody } from './rerank-schema.ts';
import { measureSearch, tokensMax, unitsMax, usualTokens, usualUnits } from './search-size.ts';

/** Fields that every provider gets. The documents of the answer are those of the request, so no provider sends them. */
const SENT: ReadonlySet<string> = new Set(['query', 'documents', 'top_n', 'max_tokens_per_doc']);
const RETURNS_DOCUMENTS = 'return_documents';

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function rerankToCall(body: RerankBody, context: PassedContext): PassedCall<RerankResult> {
  const { caller, headers, requestId, replyBytesMax, payment } = context;
  const size = measureSearch(body);
  let dropped: readonly string[] = [];
  const adapter: RequestAdapter<RerankResult | null> = {
    request(offer) {
      const forwarded = bodyFor(body, offer);
      dropped = forwarded.dropped;
      return {
        method: 'POST',
        path: '/rerank',
        headers: { 'content-type': 'application/json', accept: 'application/json', 'x-request-id': requestId },
        body: Buffer.from(JSON.stringify(forwarded.body)),
      };
    },
    reader({ model, price: { rates } }) {
      return createRerankReader({
        documents: body.documents.length,
        results: Math.min(body.top_n ?? Infinity, body.documents.length),
        tokens: { max: tokensMax(size, model!), usual: usualTokens(size, model!) },
        units: { max: unitsMax(size), usual: usualUnits(size) },
        priced: { tokens: rateOf(rates, 'prompt') > 0n, units: pricedMeters(rates).has('call') },
        replyBytesMax,
      });
    },
  };
  const session = requestedSession(body, headers);
  const traceparent = headers['traceparent'];
  const request: PassedCall<RerankResult>['request'] = {
    primitive: 'model',
    caller,
    requestId,
    targets: [body.model],
    preferences: body.provider ? toPreferences(body.provider) : NO_PREFERENCES,
    // Scores of two providers cannot be compared.
    stickyKey: `${caller.account} ${session ?? `rerank ${body.model}`}`,
    images: 0,
    stream: false,
    adapter: singleRequest(adapter),
    // One offer charges for searches and another one for tokens. Naming the price makes routing compare the costs.
    price: ({ price }) => price,
    estimate(offer) {
      const { service, model } = offer;
      if (!reranks(model!)) throw wrongKind(offer, 'sorts no documents');
      if (size.images > 0 && !model!.inputModalities.includes('image'))
        throw new GatewayError('unprocessable', `${service} takes no images`, { param: 'documents' });
      return { prompt: BigInt(tokensMax(size, model!)), call: BigInt(unitsMax(size)) };
    },
    lacks: (offer) => bodyFor(body, offer).dropped,
    metadata: body.metadata ?? null,
    traceparent: typeof traceparent === 'string' ? traceparent : null,
    wantsReceipt: wantsReceipt(false, context),
    quote: requestedQuote(null, headers, null),
    ...(payment ? { payment } : {}),
  };
  const cap = lowestCap([
    ['max_cost', body.max_cost],
    [MAX_COST_HEADER, headers[MAX_COST_HEADER]],
  ]);
  return { request: capCost(request, cap), dropped: () => dropped };
}

function bodyFor(body: RerankBody, offer: Offer): ReturnType<typeof passedBody> {
  const { [RETURNS_DOCUMENTS]: _answered, ...rest } = body;
  const passed = passedBody(rest, offer, SENT);
  // Some servers repeat the documents unless they are told not to, and others refuse the field.
  if (listsField(offer.model!, RETURNS_DOCUMENTS)) passed.body[RETURNS_DOCUMENTS] = false;
  return passed;
}

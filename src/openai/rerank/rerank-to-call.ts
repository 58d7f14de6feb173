import { pricedMeters, rateOf } from '#billing/amounts';
import { GatewayError } from '#errors';
import type { Offer } from '#catalog';
import { listed } from '../chat/price/paid-extras.ts';
import { passedBody, passedCall } from '../passing/passed-call.ts';
import type { PassedCall, PassedContext } from '../passing/passed-route.ts';
import { createRerankReader, type RerankResult } from './rerank-reader.ts';
import type { RerankBody } from './rerank-schema.ts';
import { measureSearch, tokensMax, unitsMax, usualTokens, usualUnits } from './search-size.ts';

/** Fields that every provider gets. The documents of the answer are those of the request, so no provider sends them. */
const SENT: ReadonlySet<string> = new Set(['query', 'documents', 'top_n', 'max_tokens_per_doc']);
const RETURNS_DOCUMENTS = 'return_documents';

/** Turns a checked body into a request for the pipeline. Throws GatewayError `invalid_request`. */
export function rerankToCall(body: RerankBody, context: PassedContext): PassedCall<RerankResult> {
  const size = measureSearch(body);
  return passedCall(body, context, {
    kind: 'rerank',
    bodyFor: (offer) => bodyFor(body, offer),
    reader: (offer) =>
      createRerankReader({
        documents: body.documents.length,
        results: Math.min(body.top_n ?? Infinity, body.documents.length),
        tokens: { max: tokensMax(size, offer), usual: usualTokens(size, offer) },
        units: { max: unitsMax(size), usual: usualUnits(size) },
        priced: {
          tokens: rateOf(offer.price.rates, 'prompt') > 0n,
          units: pricedMeters(offer.price.rates).has('call'),
        },
        replyBytesMax: context.replyBytesMax,
      }),
    // Scores of two providers cannot be compared.
    staysAs: `rerank ${body.model}`,
    // One offer charges for searches and another one for tokens. Naming the price makes routing compare the costs.
    price: ({ price }) => price,
    estimate(offer) {
      const { service, model } = offer;
      if (size.images > 0 && !model!.inputModalities.includes('image'))
        throw new GatewayError('unprocessable', `${service} takes no images`, { param: 'documents' });
      return { prompt: BigInt(tokensMax(size, offer)), call: BigInt(unitsMax(size)) };
    },
  });
}

function bodyFor(body: RerankBody, offer: Offer): ReturnType<typeof passedBody> {
  const { [RETURNS_DOCUMENTS]: _answered, ...rest } = body;
  const passed = passedBody(rest, offer, SENT);
  // Some servers repeat the documents unless they are told not to, and others refuse the field.
  if (listed(offer, RETURNS_DOCUMENTS)) passed.body[RETURNS_DOCUMENTS] = false;
  return passed;
}

import { GatewayError } from '#wire';
import { formatUsd } from '#billing';
import type { Call, Offer } from '../call.ts';
import type { CallRequest } from '../call-request.ts';
import type { PricedFacts, Quote } from './quotes.ts';

/**
 * The members of a call that determine its price at an offer. They include the operation, because a tool of a server
 * may have its own price.
 */
export function pricedFacts(
  { priced, operation = null }: Pick<Call, 'priced'> & Partial<Pick<Call, 'operation'>>,
  offer: Offer,
): PricedFacts {
  return { ...priced?.(offer), ...(operation === null ? {} : { operation }) };
}

const mismatch = (param: string, message: string) =>
  new GatewayError('quote_mismatch', `The quote is for another call: ${message}`, { param });

/**
 * The request with the prices of the quote, limited to the offers of the quote. `prepare` throws GatewayError
 * `quote_mismatch`.
 */
export function atQuote(request: CallRequest, quote: Quote): CallRequest {
  const { cap } = request;
  // The quote sets the price, so the cap is compared with the quote and not with the offer's own price.
  const uncapped = cap?.of ?? request;
  if (cap && quote.amount > cap.amount)
    throw new GatewayError(
      'unprocessable',
      `${cap.name} is ${formatUsd(cap.amount)} USD, but the quote is ${formatUsd(quote.amount)} USD`,
      { param: cap.name },
    );
  if (request.primitive !== quote.primitive)
    throw mismatch('quote_id', `it is for the primitive ${quote.primitive}, not ${request.primitive}`);
  const quoted = (offer: Offer) => {
    if (offer.service !== quote.service) throw mismatch('model', `it is for ${quote.service}, not ${offer.service}`);
    const found = quote.offers.get(offer.id);
    if (found === undefined)
      throw new GatewayError('unprocessable', `${offer.provider.name} is not in the quote`, { param: 'quote_id' });
    return found;
  };
  const { budget } = request;
  return {
    ...request,
    // The cap of an agent is also the budget of its call. A cap above the quote allows no more than the quote.
    ...(typeof budget === 'bigint' && budget > quote.amount ? { budget: quote.amount } : {}),
    // The client knows the cost from the quote, so a raised price needs no other acceptance.
    capped: true,
    price(offer) {
      const { price, facts } = quoted(offer);
      const asked = pricedFacts(request, offer);
      for (const name of new Set([...Object.keys(facts), ...Object.keys(asked)])) {
        const [was, is] = [facts[name] ?? null, asked[name] ?? null];
        if (was !== is) throw mismatch(name, `it has ${name} ${was}, not ${is}`);
      }
      return price;
    },
    estimate(offer) {
      const most = uncapped.estimate(offer);
      return 'costMax' in most ? { costMax: quote.amount } : most;
    },
  };
}

/** Throws GatewayError `quote_mismatch` for a call that may cost more than its quote. */
export function refuseDearer({ candidates, lendable }: Call, { amount }: Quote): void {
  for (const { estimate } of candidates)
    if (estimate + lendable > amount) throw mismatch('quote_id', 'this one may cost more');
}

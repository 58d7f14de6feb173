import { GatewayError } from '#wire';
import { formatUsd } from '#billing';
import type { Call, Offer } from '../call.ts';
import type { CallRequest } from '../call-request.ts';
import type { PricedFacts, Quote } from './quotes.ts';

/** Members of a call that its price at an offer follows from. A tool of a server may have a price of its own. */
export function pricedFacts(
  { priced, operation = null }: Pick<Call, 'priced'> & Partial<Pick<Call, 'operation'>>,
  offer: Offer,
): PricedFacts {
  return { ...priced?.(offer), ...(operation === null ? {} : { operation }) };
}

const mismatch = (param: string, message: string) =>
  new GatewayError('quote_mismatch', `The quote is of another call: ${message}`, { param });

/** The request at the prices of the quote, and at its offers alone. `prepare` throws GatewayError `quote_mismatch`. */
export function atQuote(request: CallRequest, quote: Quote): CallRequest {
  const { cap } = request;
  // The quote is the price: what the call would cost without it does not count.
  const uncapped = cap?.of ?? request;
  if (cap && quote.amount > cap.amount)
    throw new GatewayError(
      'unprocessable',
      `${cap.name} is ${formatUsd(cap.amount)} USD, and the quote ${formatUsd(quote.amount)} USD`,
      { param: cap.name },
    );
  if (request.primitive !== quote.primitive)
    throw mismatch('quote_id', `it is of the primitive ${quote.primitive}, not ${request.primitive}`);
  const quoted = (offer: Offer) => {
    if (offer.service !== quote.service) throw mismatch('model', `it is of ${quote.service}, not ${offer.service}`);
    const found = quote.offers.get(offer.id);
    if (found === undefined)
      throw new GatewayError('unprocessable', `${offer.provider.name} is not in the quote`, { param: 'quote_id' });
    return found;
  };
  return {
    ...request,
    // What the call may cost was said by the gateway itself.
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

/** Throws GatewayError `quote_mismatch` for a call that may cost more than its quote says. */
export function refuseDearer({ candidates, lendable }: Call, { amount }: Quote): void {
  for (const { estimate } of candidates)
    if (estimate + lendable > amount) throw mismatch('quote_id', 'this one may cost more');
}

const text = (description: string) => ({ type: 'string', description });

/** The answer to a request for a quote: QuoteView. */
export const quoteSchema = {
  title: 'Quote',
  type: 'object',
  required: ['price_usd', 'valid', 'message'],
  properties: {
    price_usd: { type: 'number', description: 'Cost of the call in USD; 0 if `valid` is false.' },
    valid: { type: 'boolean', description: 'False if no provider can serve the request.' },
    message: text('Why it is not valid; else empty.'),
    quote_id: text('Send it with the call, as `quote_id` or in the header `x-quote-id`.'),
    valid_until: text('RFC 3339. Until then the call costs this amount, even if the price rises.'),
    price_micro_usdc: { type: 'integer', description: 'The same in micro-USD.' },
    exact: { type: 'boolean', description: 'False if the call may cost less.' },
    breakdown: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          meter: text('What is counted.'),
          units: { type: 'integer' },
          unit_price_usd: { type: 'number' },
        },
      },
    },
    provider: text('Public key of the provider that would be tried first.'),
    resolved: { type: 'object', additionalProperties: true, description: 'Facts from which the price is calculated.' },
  },
};

const text = (description: string) => ({ type: 'string', description });

/** The answer to a request for a quote: QuoteView. */
export const quoteSchema = {
  type: 'object',
  required: ['price_usd', 'valid', 'message'],
  properties: {
    price_usd: { type: 'number', description: 'What the call costs, USD; 0 where `valid` is false.' },
    valid: { type: 'boolean', description: 'False where no provider can do what is asked.' },
    message: text('Why it is not valid; else empty.'),
    quote_id: text('Send it with the call, as `quote_id` or in the header `x-quote-id`.'),
    valid_until: text('RFC 3339. Until then the call costs this, also where the price rises.'),
    price_micro_usdc: { type: 'integer', description: 'The same in micro-USD.' },
    exact: { type: 'boolean', description: 'False where the call may cost less.' },
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
    provider: text('Public key of the first provider that would be asked.'),
    resolved: { type: 'object', additionalProperties: true, description: 'What the price follows from.' },
  },
};

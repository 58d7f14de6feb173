import { GatewayError } from '#wire';
import type { PaymentAttempt } from '../payments/payments.ts';

/** The quote that is to set the price of a call. */
export interface RequestedQuote {
  readonly id: string;
  /** True if the client did not name the quote itself. It is then ignored if it does not fit. */
  readonly implied: boolean;
}

export const QUOTE_HEADER = 'x-quote-id';

const QUOTE_ID = /^qt_[0-9a-f]{32}$/;

/**
 * The quote that the body, the header or the payment names, in this order; null for none. A payment contains the terms
 * that it was made for, with the id of their quote. Throws GatewayError `not_found` for a text that is not a quote id.
 */
export function requestedQuote(
  inBody: unknown,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  payment: PaymentAttempt | null,
): RequestedQuote | null {
  const named = inBody ?? headers[QUOTE_HEADER];
  if (named !== undefined && named !== null) {
    if (typeof named !== 'string' || !QUOTE_ID.test(named))
      throw new GatewayError('not_found', 'Quote not found', {
        param: inBody === undefined || inBody === null ? QUOTE_HEADER : 'quote_id',
      });
    return { id: named, implied: false };
  }
  if (payment === null) return null;
  const { extra } = payment.payload['accepted'] as { readonly extra?: { readonly quoteId?: unknown } };
  const id = extra?.quoteId;
  return typeof id === 'string' && QUOTE_ID.test(id) ? { id, implied: true } : null;
}

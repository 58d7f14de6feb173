import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '#errors';
import { formatUsd, type MicroUsd, type Rates, toUsdNumber, unitUsd, type Usage } from '#billing';
import type { Health } from '#catalog';
import type { Caller } from '#accounts';
import type { Call, Candidate, CallRequest, PricedFacts } from './call.ts';
import type { Pipeline } from './pipeline.ts';
import { releaseProbes } from './routing/router.ts';
import { isQuoted, pricedFacts, type Quotes } from './quotes.ts';

/** The cost of a call, in the answer to a client. */
export interface QuoteView {
  readonly price_usd: number;
  /** False if no provider can serve the request. There is then no quote. */
  readonly valid: boolean;
  /** The reason if it is not valid; else empty. */
  readonly message: string;
  /** Absent if the caller has no account, or if quotes do not bind the provider. */
  readonly quote_id?: string;
  /** RFC 3339. */
  readonly valid_until?: string;
  readonly price_micro_usdc?: number;
  /** True: the call costs exactly this. False: it costs at most this. */
  readonly exact?: boolean;
  readonly breakdown?: readonly { readonly meter: string; readonly units: number; readonly unit_price_usd: number }[];
  /** Public key of the provider that would be tried first. */
  readonly provider?: string;
  /** The members of the call that determine its price. */
  readonly resolved?: PricedFacts;
}

interface QuoteCallDeps {
  readonly pipeline: Pipeline;
  readonly quotes: Quotes;
  readonly health: Health;
}

/**
 * Computes the cost of a call, and gives the caller's account a binding quote for it. Rejects with GatewayError for an
 * invalid request or one that no provider can answer now.
 */
export async function quoteCall({ pipeline, quotes, health }: QuoteCallDeps, request: CallRequest): Promise<QuoteView> {
  let call: Call;
  try {
    call = await pipeline.prepare(request);
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'unprocessable')
      return { price_usd: 0, valid: false, message: error.message };
    throw error;
  }
  // A quote sends nothing, so it must not use up the trial request of an offer that has cooled down.
  releaseProbes(health, call);
  const first = call.candidates[0]!;
  // A quote fixes the price of a provider, not the part of it that a call with an own key costs.
  const alike = call.candidates.filter(
    ({ estimate, offer, ownKey }) => estimate === first.estimate && ownKey === undefined && isQuoted(offer),
  );
  const amount = first.estimate + call.lendable;
  const givenQuote = call.caller.anonymous || alike.length === 0 ? null : await quotes.give(call, alike);
  return {
    price_usd: toUsdNumber(amount),
    valid: true,
    message: '',
    ...(givenQuote === null
      ? {}
      : { quote_id: givenQuote.id, valid_until: new Date(givenQuote.validUntil).toISOString() }),
    price_micro_usdc: Number(amount),
    exact: (call.priced !== undefined && !first.price.rates.prompt) || isPerCall(first, request, call.lendable),
    breakdown: breakdownOf(first, request),
    provider: first.offer.provider.id,
    resolved: pricedFacts(call, first.offer, first.price),
  };
}

/** Whether a call costs a fixed price, whatever it uses. */
function isPerCall({ offer, price: { rates } }: Candidate, request: CallRequest, lendable: MicroUsd): boolean {
  const most = request.estimate(offer);
  const used = Object.keys(rates).filter((meter) => rates[meter as keyof Rates] !== 0n);
  return !('costMax' in most) && (most.call ?? 1n) === 1n && lendable === 0n && used.every((meter) => meter === 'call');
}

function breakdownOf(
  { offer, price: { rates } }: Candidate,
  request: CallRequest,
): NonNullable<QuoteView['breakdown']> {
  const most = request.estimate(offer);
  if ('costMax' in most) return [{ meter: 'call', units: 1, unit_price_usd: Number(formatUsd(most.costMax)) }];
  return (Object.keys(most) as (keyof Usage)[]).flatMap((meter) => {
    const [units, rate] = [most[meter] ?? 0n, rates[meter] ?? 0n];
    return units === 0n || rate === 0n ? [] : [{ meter, units: Number(units), unit_price_usd: Number(unitUsd(rate)) }];
  });
}

const text = (description: string) => ({ type: 'string', description });

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

/** Everything about a request for a quote except its body. */
interface QuotableContext {
  readonly caller: Caller;
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
}

/** Reads the body of a call of one primitive. Throws or rejects with GatewayError for an invalid body. */
export type Quotable = (
  body: Readonly<Record<string, unknown>>,
  context: QuotableContext,
) => CallRequest | Promise<CallRequest>;

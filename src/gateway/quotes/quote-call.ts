import { GatewayError } from '#wire';
import { formatUsd, type MicroUsd, type Rates, toUsdNumber, unitUsd, type Usage } from '#billing';
import type { Call, Candidate } from '../call.ts';
import type { CallRequest } from '../call-request.ts';
import type { Pipeline } from '../pipeline.ts';
import { releaseProbes } from '../routing/release-probes.ts';
import type { Health } from '../routing/router.ts';
import { pricedFacts } from './quoted-request.ts';
import type { PricedFacts, Quotes } from './quotes.ts';

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

interface QuoteDeps {
  readonly pipeline: Pick<Pipeline, 'prepare'>;
  readonly quotes: Pick<Quotes, 'give'>;
  readonly health: Pick<Health, 'notProbed'>;
}

/**
 * Computes the cost of a call, and gives the caller's account a binding quote for it. Rejects with GatewayError for an
 * invalid request or one that no provider can answer now.
 */
export async function quoteCall({ pipeline, quotes, health }: QuoteDeps, request: CallRequest): Promise<QuoteView> {
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
  const alike = call.candidates.filter(({ estimate, offer }) => estimate === first.estimate && isQuoted(offer));
  const amount = first.estimate + call.lendable;
  const given = call.caller.anonymous || alike.length === 0 ? null : await quotes.give(call, alike);
  return {
    price_usd: toUsdNumber(amount),
    valid: true,
    message: '',
    ...(given === null ? {} : { quote_id: given.id, valid_until: new Date(given.validUntil).toISOString() }),
    price_micro_usdc: Number(amount),
    exact: call.priced !== undefined || isPerCall(first, request, call.lendable),
    breakdown: breakdownOf(first, request),
    provider: first.offer.provider.id,
    resolved: pricedFacts(call, first.offer),
  };
}

/** Whether a quote can fix the price of an offer. */
export const isQuoted = ({ media }: Candidate['offer']): boolean => media?.unquoted !== true;

/** Whether a call costs a fixed price, whatever it uses. */
function isPerCall({ offer, price: { rates } }: Candidate, request: CallRequest, lendable: MicroUsd): boolean {
  const most = request.estimate(offer);
  const used = Object.keys(rates).filter((meter) => rates[meter as keyof Rates] !== 0n);
  return !('costMax' in most) && lendable === 0n && used.every((meter) => meter === 'call');
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

import { formatUsd, unitUsd, type MicroUsd } from '#billing';
import type { Offer } from '../call.ts';
import { compare } from './listings.ts';

/**
 * The price of a call of one tool, as exact decimal texts. Rates and the most that a call can cost are there only
 * where a call is charged by use.
 */
export interface ToolCallPrice {
  /** "0" where the tool is free. */
  readonly per_call: string;
  readonly per_second?: string;
  /** Of an image model. */
  readonly per_image?: string;
  /** Per 1M tokens, as `completion`. */
  readonly prompt?: string;
  readonly completion?: string;
  /** The most that a call costs: by its use, or at another provider of the service that asks more. */
  readonly per_call_max?: string;
  readonly currency: 'USDC';
}

type Priced = Pick<Offer, 'price' | 'variants' | 'priceCap'>;

/**
 * The price of `tool` at `offer`, which decides how a call is charged. `offers`: all that a call of the service may
 * be sent to.
 */
export function viewToolCallPrice(offer: Priced, tool: string, offers: readonly Priced[] = [offer]): ToolCallPrice {
  const { call = 0n, second, image, prompt, completion } = ownPrice(offer, tool) ?? offer.price.rates;
  const most = offers.reduce((dearest, other) => max(dearest, mostOf(other, tool)), mostOf(offer, tool));
  return {
    per_call: unitUsd(call),
    ...(second === undefined ? {} : { per_second: unitUsd(second) }),
    ...(image === undefined ? {} : { per_image: unitUsd(image) }),
    ...(prompt === undefined ? {} : { prompt: formatUsd(prompt) }),
    ...(completion === undefined ? {} : { completion: formatUsd(completion) }),
    ...(most > call / UNITS ? { per_call_max: formatUsd(most) } : {}),
    currency: 'USDC',
  };
}

const UNITS = 1_000_000n;

const ownPrice = ({ variants }: Priced, tool: string) =>
  Object.hasOwn(variants, tool) ? variants[tool]!.rates : undefined;

/** Micro-USD. A tool with a price of its own is not charged by use. */
function mostOf(offer: Priced, tool: string): MicroUsd {
  const own = ownPrice(offer, tool);
  const perCall = (own ?? offer.price.rates).call ?? 0n;
  return own || offer.priceCap === null ? perCall / UNITS : offer.priceCap;
}

const max = (a: MicroUsd, b: MicroUsd) => (a > b ? a : b);

/** The offers of a tool service, the cheapest first; the same order at every gateway. */
export function byPrice(offers: readonly Offer[]): readonly Offer[] {
  if (offers.length < 2) return offers;
  const rate = ({ price }: Offer) => price.rates.call ?? 0n;
  return offers.toSorted((a, b) => (rate(a) < rate(b) ? -1 : rate(a) > rate(b) ? 1 : compare(a.id, b.id)));
}

import { formatUsd, unitUsd, type MicroUsd } from '#billing';
import type { Offer } from '../call.ts';
import { compare } from './listings.ts';

/**
 * The price of a call of one tool, as exact decimal strings. The rates and the maximum cost of a call are present only
 * if calls are charged by use.
 */
export interface ToolCallPrice {
  /** "0" if the tool is free. */
  readonly per_call: string;
  readonly per_second?: string;
  /** Only of an image model. */
  readonly per_image?: string;
  /** Per 1M tokens, like `completion`. */
  readonly prompt?: string;
  readonly completion?: string;
  /** The maximum cost of a call: by its use, or at a more expensive provider of the service. */
  readonly per_call_max?: string;
  readonly currency: 'USDC';
}

type Priced = Pick<Offer, 'price' | 'variants' | 'priceCap'>;

/** The price of `tool` at `offer`. `offers`: all offers that a call of the service may be sent to. */
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

/** The maximum cost of a call in micro-USD. A tool with its own price is not charged by use. */
function mostOf(offer: Priced, tool: string): MicroUsd {
  const own = ownPrice(offer, tool);
  const perCall = (own ?? offer.price.rates).call ?? 0n;
  return own || offer.priceCap === null ? perCall / UNITS : offer.priceCap;
}

const max = (a: MicroUsd, b: MicroUsd) => (a > b ? a : b);

/** The offers of a tool service, cheapest first, in the same order at every gateway. */
export function byPrice(offers: readonly Offer[]): readonly Offer[] {
  if (offers.length < 2) return offers;
  const rate = ({ price }: Offer) => price.rates.call ?? 0n;
  return offers.toSorted((a, b) => (rate(a) < rate(b) ? -1 : rate(a) > rate(b) ? 1 : compare(a.id, b.id)));
}

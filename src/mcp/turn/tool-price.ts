import type { Price } from '#billing/amounts';
import type { Offer } from '#gateway';

/** The price of a tool at an offer: its own, or that of the service. */
export function priceOfTool(offer: Offer, tool: unknown): Price {
  return hasOwnPrice(offer, tool) ? offer.variants[tool]! : offer.price;
}

/** Whether a tool has a price of its own, which is a flat one. */
export function hasOwnPrice({ variants }: Offer, tool: unknown): tool is string {
  return typeof tool === 'string' && Object.hasOwn(variants, tool);
}

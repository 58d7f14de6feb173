import type { Price } from '#billing/amounts';
import type { Offer } from '#gateway';

/** The price of a tool at an offer: its own price, or else the price of the service. */
export function priceOfTool(offer: Offer, tool: unknown): Price {
  return hasOwnPrice(offer, tool) ? offer.variants[tool]! : offer.price;
}

/** Whether a tool has its own price. Such a price is flat. */
export function hasOwnPrice({ variants }: Offer, tool: unknown): tool is string {
  return typeof tool === 'string' && Object.hasOwn(variants, tool);
}

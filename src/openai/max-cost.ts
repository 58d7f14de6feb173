import { parseMaxCost, type MicroUsd } from '#gateway';
import type { ChatBody } from './chat-schema.ts';

/** What requests and errors call it. */
export const MAX_COST = 'max_cost';

/** The body's `max_cost`; null without one. Throws GatewayError `invalid_request`. */
export function maxCostOf({ max_cost: asked }: Pick<ChatBody, 'max_cost'>): MicroUsd | null {
  if (asked === undefined || asked === null) return null;
  return parseMaxCost(asked, MAX_COST);
}

/** The body with the `x-max-cost` header as its `max_cost`, where it has none of its own: for clients that cannot add to a body. */
export function withMaxCost(body: ChatBody, header: string | string[] | undefined): ChatBody {
  return typeof header === 'string' && (body.max_cost === undefined || body.max_cost === null) ? { ...body, max_cost: header } : body;
}

import { formatUsd } from '#billing/amounts';
import { lowestCap, MAX_COST_HEADER, type CostCap } from '#gateway';
import type { ChatBody } from './chat-schema.ts';

const MAX_COST = 'max_cost';

/** The body's `max_cost`; null without one. Throws GatewayError `invalid_request`. */
export const maxCostOf = ({ max_cost: asked }: Pick<ChatBody, 'max_cost'>): CostCap | null =>
  lowestCap([[MAX_COST, asked]]);

/**
 * Sets `max_cost` from the `x-max-cost` header, if the header is lower or the body has no `max_cost`. The header
 * serves clients that cannot change the body, and proxies in front of the gateway. Throws GatewayError
 * `invalid_request`.
 */
export function withMaxCost(body: ChatBody, header: string | string[] | undefined): ChatBody {
  if (header === undefined) return body;
  const cap = lowestCap([
    [MAX_COST, body.max_cost],
    [MAX_COST_HEADER, header],
  ]);
  return cap?.name === MAX_COST_HEADER ? { ...body, max_cost: formatUsd(cap.amount) } : body;
}

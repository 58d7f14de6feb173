import { type CallRequest, cost, formatUsd, GatewayError, MoneyError, parseUsd, type MicroUsd } from '#gateway';
import type { ChatBody } from './chat-schema.ts';

/** The body's `max_cost`; null without one. Throws GatewayError `invalid_request`. */
export function maxCostOf({ max_cost: asked }: Pick<ChatBody, 'max_cost'>): MicroUsd | null {
  if (asked === undefined || asked === null) return null;
  try {
    return parseUsd(asked, 'max_cost');
  } catch (error) {
    if (!(error instanceof MoneyError)) throw error;
    throw new GatewayError('invalid_request', error.message, { param: 'max_cost', cause: error });
  }
}

/** The request within `maxCost`: offers whose estimate is higher do not serve it. An agent's calls of its own count, and so are given the rest. */
export function capCost(request: CallRequest, maxCost: MicroUsd): CallRequest {
  const capped: CallRequest = {
    ...request,
    estimate(offer) {
      const most = request.estimate(offer);
      const { rates } = request.price?.(offer) ?? offer.price;
      const amount = 'costMax' in most ? most.costMax : cost(rates, most);
      if (amount <= maxCost) return most;
      throw new GatewayError('unprocessable', `max_cost is ${formatUsd(maxCost)} USD, but ${offer.service} may cost ${formatUsd(amount)} USD`, {
        param: 'max_cost',
      });
    },
  };
  return request.primitive === 'agent' ? { ...capped, budget: maxCost } : capped;
}
